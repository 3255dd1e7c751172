/** One outcome. `text`: the encoded result, or the error as JSON if errors are wanted. */
export interface ReadItem {
  readonly index: number;
  /** 'redriven': it had failed, and a redrive took the failure back. */
  readonly kind: 'succeeded' | 'failed' | 'redriven';
  readonly text: string;
}

/** One entry of the results stream: the outcomes that one call of `settle` recorded. */
export interface ReadEntry {
  /** `<generation>-<number>`, rising. */
  readonly position: string;
  readonly items: readonly ReadItem[];
}
