const ESCAPES: Readonly<Record<string, string>> = { '0': '\0', n: '\n', r: '\r', t: '\t' };

/** Replaces `\\0`, `\\n`, `\\r` and `\\t` in a delimiter as it was typed. */
export const delimiterOf = (typed: string) =>
  typed.replace(/\\(.)/g, (_, letter: string) => ESCAPES[letter] ?? letter);

/** Whether it is one character that can separate the fields of CSV. */
export const separatesFields = (text: string): boolean =>
  [...text].length === 1 && !/["\r\n]/.test(text);
