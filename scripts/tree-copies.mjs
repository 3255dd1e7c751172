/*
 * Copies of this repository in which a cure is switched off, to see which tests fail.
 */
import { execFileSync } from 'node:child_process';
import {
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { anchorsIn, changeAt } from './anchors.mjs';

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

  /** A separate tree for a test run: the built packages, and everything that tests read. */
  next() {
    this.#count += 1;
    const copy = join(this.#folder, String(this.#count));
    const own = (path) => !/\/(?:node_modules\/\.pnpm|\.vite|src)$/.test(path);
    const options = { recursive: true, verbatimSymlinks: true, filter: own };
    for (const part of PARTS) cpSync(join(root, part), join(copy, part), options);
    // Dependencies are large and not changed, so they are linked.
    symlinkSync(join(root, 'node_modules/.pnpm'), join(copy, 'node_modules/.pnpm'));
    return copy;
  }

  removeAll() {
    // What still runs in a copy may write while it is removed.
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 20 });
  }
}

const packages = join(root, 'packages');

let found;

/** The sources of all packages, by the anchors in them. */
export function anchored() {
  if (found) return found;
  found = new Map();
  const sources = readdirSync(packages, { recursive: true }).filter((path) =>
    /^[^/]+\/src\/.*\.ts$/.test(path),
  );
  for (const source of sources) {
    for (const cure of anchorsIn('ts', readFileSync(join(packages, source), 'utf8'))) {
      found.set(cure, [...(found.get(cure) ?? []), source]);
    }
  }
  return found;
}

/** The path, in the tree, of the file built from the source that has an anchor. */
export function builtWith(cure) {
  const sources = anchored().get(cure) ?? [];
  if (sources.length !== 1) {
    throw new Error(`cure '${cure}': its anchor occurs ${sources.length} times in packages/*/src`);
  }
  return join('packages', sources[0].replace('/src/', '/dist/').replace(/\.ts$/, '.js'));
}

/** Switches a cure of the code off in a copy. Answers the reason if that is impossible. */
export function switchOff(tree, { cure, change, changes = [{ cure, change }] }) {
  try {
    for (const { cure, change } of changes) {
      const path = join(tree, builtWith(cure));
      writeFileSync(path, changeAt('js', readFileSync(path, 'utf8'), cure, change));
    }
    // The renewal thread runs a bundle of what was changed.
    execFileSync(process.execPath, [join(tree, 'scripts/build-thread.mjs')]);
    return undefined;
  } catch (error) {
    return error.message;
  }
}
