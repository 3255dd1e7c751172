import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import type { Outcome } from '../outcome.js';
import { forMarkdown } from '../tables.js';
import type { MeasuredFigure } from './figure.js';
import { rowsTable, verdictsTable } from './figure-tables.js';
import { plot } from './plot.js';

/** The part of the report on the figures; their plots are written beside it, into a folder of its name. */
export function figureParts(file: string, outcome: Outcome): string[] {
  const { figures } = outcome;
  if (figures.length === 0) return [];
  const folder = folderOf(file);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  return [
    '## Targets',
    forMarkdown(verdictsTable(figures)),
    ...figures.flatMap((figure) => {
      writeFileSync(join(folder, `${figure.name}.svg`), picture(figure, outcome));
      return figureSection(figure, basename(folder));
    }),
  ];
}

function folderOf(file: string): string {
  const path = resolve(file);
  return join(dirname(path), basename(path, '.md'));
}

export function picture(
  { title, rows }: Pick<MeasuredFigure, 'title' | 'rows'>,
  { command, surroundings }: Outcome,
): string {
  const { date, revision, machine, versions, persistence, load } = surroundings;
  return plot(title, rows, [
    `${command} · revision ${revision} · ${date} UTC`,
    `${machine} · load ${load}`,
    `${versions} · persistence: ${persistence}`,
  ]);
}

function figureSection(figure: MeasuredFigure, folder: string): string[] {
  const { name, title, definition, method, target, rows, seconds } = figure;
  const notes = rows.flatMap(({ label, note }) => (note ? [`- ${label}: ${note}`] : []));
  return [
    `### ${title}`,
    `\`--figures ${name}\` · target: ${target} · took ${Math.round(seconds)} s`,
    `**What.** ${definition}`,
    `**How.** ${method}`,
    `![${title}](${folder}/${name}.svg)`,
    forMarkdown(rowsTable({ ...figure, title: '' })),
    ...(notes.length > 0 ? [[...new Set(notes)].join('\n')] : []),
  ];
}
