/** What becomes of the node behind an anchor (see anchors.mjs). */
export type Change =
  | 'skip'
  | 'never'
  | 'always'
  | { readonly skip: number }
  | { readonly becomes: string; readonly uses?: readonly string[] };

export function anchorsIn(language: 'lua' | 'js' | 'ts', text: string): string[];
export function withoutAnchors(lua: string): string;
export function changeAt(
  language: 'lua' | 'js',
  text: string,
  cure: string,
  change?: Change,
): string;
