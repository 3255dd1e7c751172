import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { REPOSITORY } from '../machine.js';
import type { Table } from '../tables.js';
import { forMarkdown } from '../tables.js';
import type { Plots } from './plots.js';

/** What stands between two marks of the page, by the name in the first: `<!-- figures: name -->`. */
export type Blocks = Readonly<Record<string, Table | string>>;

const PAGE = join(REPOSITORY, 'docs', 'scaling.md');
export const FOLDER = join(REPOSITORY, 'docs', 'scaling');

/** Puts the figures into docs/scaling.md, whose text is written by hand, and the plots beside it. */
export function writePage(blocks: Blocks, plots: Plots, measured: unknown): void {
  writeFileSync(PAGE, withFigures(readFileSync(PAGE, 'utf8'), blocks));
  mkdirSync(FOLDER, { recursive: true });
  for (const [name, svg] of Object.entries(plots)) writeFileSync(join(FOLDER, name), svg);
  writeFileSync(join(FOLDER, 'measured.json'), `${JSON.stringify(measured, null, 2)}\n`);
}

/** @throws Error when the page has no place for a block */
export function withFigures(page: string, blocks: Blocks): string {
  let text = page;
  for (const [name, block] of Object.entries(blocks)) {
    const begin = `<!-- figures: ${name} -->`;
    const from = text.indexOf(begin);
    const to = text.indexOf('<!-- end -->', from);
    if (from < 0 || to < 0) throw new Error(`docs/scaling.md has no place for “${name}”`);
    const body = typeof block === 'string' ? block : forMarkdown(block);
    text = `${text.slice(0, from)}${begin}\n\n${body}\n\n${text.slice(to)}`;
  }
  return text;
}
