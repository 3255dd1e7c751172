import { stripVTControlCharacters } from 'node:util';

/** Control characters, and those that change the direction of the text around them. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are removed
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** Any text as one line, without what would move the cursor, change colours or turn the text round. */
export function oneLine(text: string): string {
  return stripVTControlCharacters(text).replace(CONTROLS, ' ');
}

/** The first line of any text, cleaned like `oneLine`. */
export function firstLine(text: string): string {
  return oneLine(
    stripVTControlCharacters(text)
      .trim()
      .split(/[\r\n]/, 1)[0] ?? '',
  );
}
