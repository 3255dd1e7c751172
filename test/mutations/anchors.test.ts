/**
 * `npm run test:mutants` switches cures off by replacing text in the built code. A text that is not there any more
 * would switch nothing off, and nobody would hear of it until that command runs.
 */
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { codeCures } from './cures.mjs';

const root = new URL('../../', import.meta.url);

it.each(codeCures)('$cure: what is replaced stands in $code once', ({ code, edits }) => {
  const file = fileURLToPath(new URL(code, root));
  expect(existsSync(file)).toBe(true);
  let text = readFileSync(file, 'utf8');
  for (const { from, to } of edits) {
    expect(text.split(from).length - 1, from).toBe(1);
    text = text.replace(from, () => to);
  }
});
