import { stripVTControlCharacters } from 'node:util';

/** The first line of any text, without characters that would move the cursor. */
export function firstLine(text: string): string {
  const plain =
    stripVTControlCharacters(text)
      .trim()
      .split(/[\r\n]/, 1)[0] ?? '';
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are removed
  return plain.replace(/[\u0000-\u001f\u007f-\u009f]/g, ' ');
}
