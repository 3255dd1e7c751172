/**
 * Stands for a value that may hold a password at a place that nobody knows, such as a URL with a mistake in it: errors
 * reach logs, so it is not shown at all.
 */
export const HIDDEN = '…';

/**
 * Removes passwords from what is no URL of Redis. A password may contain @ and /, so it ends at the last @ of its word;
 * the user before it is left out as well.
 */
export function withoutPassword(value: unknown): unknown {
  if (typeof value !== 'string') return value;
  return value.replace(/\S+/g, (word) => {
    const at = word.lastIndexOf('@');
    const before = at < 0 ? word : word.slice(0, at);
    const [scheme = ''] = /^.*?:\/\//.exec(before) ?? [];
    // Without @, only a URL may have a password: one whose end is missing.
    const from = at < 0 ? scheme.length || word.length : 0;
    const shown = before.includes(':', from) ? `${scheme}…${word.slice(before.length)}` : word;
    return shown.replace(/(password=)[^&]*/gi, '$1…');
  });
}

const A_FUNCTION = 'a function';

/** A value as a message shows it: short and on one line, so that no payload fills a log. */
export function show(value: unknown): string {
  if (typeof value === 'function') return A_FUNCTION;
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'symbol' || typeof value === 'number') return String(value);
  let text: string | undefined;
  try {
    // JSON would leave functions out.
    text = JSON.stringify(value, (_, part) => (typeof part === 'function' ? A_FUNCTION : part));
    text = text?.replaceAll(JSON.stringify(A_FUNCTION), A_FUNCTION);
  } catch {
    text = undefined;
  }
  try {
    text ??= String(value);
  } catch {
    text = 'a value that throws when it is read';
  }
  return text.length > 80 ? `${text.slice(0, 77)}…` : text;
}

/**
 * Characters that a terminal obeys, and those that nobody sees: controls, line and paragraph separators, marks of the
 * direction, zero-width characters, tags, variation selectors, halves of surrogate pairs.
 */
const UNSEEN = '[\\p{Cc}\\p{Cf}\\p{Cs}\\p{Zl}\\p{Zp}\\p{Default_Ignorable_Code_Point}]';
const HAS_UNSEEN = new RegExp(UNSEEN, 'u');
/** Emoji may have hidden characters in them, but only in the sequences that Unicode lists. */
const EMOJI_OR_UNSEEN = new RegExp(`(\\p{RGI_Emoji})|${UNSEEN}`, 'gv');
// biome-ignore lint/suspicious/noControlCharactersInRegex: a colour begins with one
const COLOUR = /\u001b\[[\d;:]*m/g;
const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/**
 * Any text that came from outside, as one line for a terminal or a text log. Each hidden character becomes the escape
 * that JSON has for it (`\u001b`, `\n`), so that JSON stays the same data. Colours are removed. Printing a text that was
 * not cleaned by this lets its writer move the cursor, forge lines or hide words.
 * @param kept characters that stay, such as tabs
 */
export function shownText(text: string, kept = ''): string {
  if (!HAS_UNSEEN.test(text)) return text;
  return text
    .replace(COLOUR, '')
    .replace(EMOJI_OR_UNSEEN, (one, emoji?: string) =>
      emoji !== undefined || kept.includes(one) ? one : (SHORT[one] ?? escaped(one)),
    );
}

const escaped = (one: string) =>
  Array.from({ length: one.length }, (_, i) => {
    const unit = one.charCodeAt(i).toString(16).padStart(4, '0');
    return `\\u${unit}`;
  }).join('');
