/*
 * Copies of this repository in which something is changed to see who notices.
 */
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const PARTS = [
  ...[
    'packages',
    'tools',
    'node_modules',
    'test',
    'scripts',
    'lua',
    'docs',
    'examples',
    'package.json',
  ],
  ...['vitest.config.ts', 'tsconfig.json', 'tsconfig.base.json'],
];

export class TreeCopies {
  #folder = mkdtempSync(join(tmpdir(), 'piecework-mutants-'));
  #count = 0;

  /** A tree of its own that tests run in: the built packages, and everything that tests read. */
  next() {
    this.#count += 1;
    const copy = join(this.#folder, String(this.#count));
    const own = (path) => !/\/(?:node_modules\/\.pnpm|\.vite|src)$/.test(path);
    const options = { recursive: true, verbatimSymlinks: true, filter: own };
    for (const part of PARTS) cpSync(join(root, part), join(copy, part), options);
    // What is not ours is not changed, and is large.
    symlinkSync(join(root, 'node_modules/.pnpm'), join(copy, 'node_modules/.pnpm'));
    return copy;
  }

  removeAll() {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** Changes built code in a copy. Answers why that cannot be done, if so. */
export function change(tree, code, edits) {
  const path = join(tree, code);
  let text = readFileSync(path, 'utf8');
  for (const { from, to } of edits) {
    const found = text.split(from).length - 1;
    if (found !== 1) return `found ${found} times in ${code}: ${from}`;
    text = text.replace(from, () => to);
  }
  writeFileSync(path, text);
  return undefined;
}
