import { stripVTControlCharacters } from 'node:util';

/** The first line of a text that may hold anything, without what would move the cursor. */
export function firstLine(text: string): string {
  const plain =
    stripVTControlCharacters(text)
      .trim()
      .split(/[\r\n]/, 1)[0] ?? '';
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
  return plain.replace(/[\u0000-\u001f\u007f-\u009f]/g, ' ');
}
