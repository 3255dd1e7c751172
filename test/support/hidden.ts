/*
 * Texts that command a terminal, forge a line or hide something.
 */

/** Controls, marks of the direction, zero-width characters, tags, variation selectors, line separators. */
export const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;

/** All of these at once. A forged line begins with `forged:`. */
export const EVIL =
  'evil\u001b[2J\u001b]0;title\u0007\u001b[31mred\u009b31m\u009d0;c1\u009c\u0085\u202eturned\u2066\u200b\u2060\ufeff' +
  '\u00ad\u034f\u{e0041}\u{e007f}\u{e0100}\ufe0e\u3164\u0008\u007f\r\nforged: 1\rforged: 2\u2028forged: 3\u2029forged: 4';
