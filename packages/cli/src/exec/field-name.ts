/**
 * A name in braces: letters and digits, and between them blanks, dots and dashes. This does not match a list of
 * commands in braces (`{ ls; }`), which begins with a blank.
 */
export const NAMED = /\{([\p{L}\p{N}_](?:[\p{L}\p{N}_. -]*[\p{L}\p{N}_])?)\}/uy;

/** Whether `{name}` can be a placeholder. */
export function isFieldName(name: string): boolean {
  NAMED.lastIndex = 0;
  return NAMED.test(`{${name}}`);
}
