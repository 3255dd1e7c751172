import { resolve } from 'node:path';
import type { RequestStatus } from '@piecework/notifier';
import type { RequestOptions } from '@piecework/producer';
import type { RequestHandle } from 'piecework';
import type { ListedFile } from '../folder/item-files.js';
import type { About, Standing, Written } from '../folder/out-dir.js';
import type { Input } from '../input/input.js';
import { OutputError } from '../output/output.js';
import { quoted } from '../terminal/quoted.js';
import type { RunFiles } from './files.js';
import { isNamed } from './named-run.js';
import type { RunValues } from './values.js';

/** What became of `--out-dir`. */
export interface Filled {
  readonly name: string;
  /** Present when all of it was written. */
  readonly written: Written | undefined;
  /** Why it was not. */
  readonly cut: OutputError | undefined;
  /** Whether the same command continues the run. */
  readonly continues: boolean;
  /** Flags of the files that the same command would write again. */
  readonly others: readonly string[];
}

interface Parts {
  readonly files: RunFiles;
  readonly items: Input;
  readonly values: RunValues;
}

export type RunStanding = Omit<Standing, 'badRecords'>;

/** What the manifest says of a run. */
export function aboutRun(
  id: string,
  values: RunValues,
  items: Input,
  asked: RequestOptions,
): About {
  const { queue, handler, exec } = values;
  const input = items.paths.map((path) => (path === '-' ? path : resolve(path)));
  const { id: _, ...options } = asked;
  return { id, queue, input, split: items.by, options: { handler, exec, ...options } };
}

/** Writes `--out-dir`, if there is one. @throws as `results` */
export async function fillOutDir(
  handle: RequestHandle,
  { files, items, values }: Parts,
  { status, endReason, generation, counts }: RunStanding,
): Promise<Filled | undefined> {
  const { outDir, badRows } = files;
  if (!outDir) return undefined;
  const continues = status === 'stopped';
  const { name } = outDir;
  const others = otherFiles(values);
  try {
    const end = { status, endReason, generation, counts, badRecords: badRows?.count };
    const written = await outDir.write(handle, items, values, end);
    return { name, written, cut: undefined, continues, others };
  } catch (error) {
    if (!(error instanceof OutputError)) throw error;
    return { name, written: undefined, cut: error, continues, others };
  }
}

/** After a stop that leaves nothing to continue: how to have something the next time. */
export function againLines(values: RunValues, filled: Filled | undefined): string[] {
  if (filled?.written || isNamed(values)) return [];
  const files = otherFiles(values);
  const replaced = files.length > 0 ? ` and replaces ${files.join(', ')}` : '';
  const at = values.redis !== undefined || process.env['REDIS_URL'] ? '' : ' --redis URL';
  return [
    `the rest is not kept; the same command starts over${replaced}`,
    `  a run that continues: piecework run --id NAME${at} …`,
    '  a run that leaves the rest as input: piecework run --out-dir DIR …',
  ];
}

/** How far a run that can be continued has come. */
export const stoppedAt = ({ counts, generation }: RequestStatus): RunStanding => ({
  ...{ status: 'stopped', endReason: undefined, generation, counts },
});

const number = (n: number) => n.toLocaleString('en-US');

/** The files that a run writes, besides the folder. A run without `--id` replaces them. */
const otherFiles = ({ out, badRows, joblog }: RunValues): string[] =>
  Object.entries({
    '--out': out === '-' ? undefined : out,
    '--bad-rows': badRows,
    '--joblog': joblog,
  })
    .filter(([, path]) => path !== undefined)
    .map(([flag]) => flag);

const again = (others: readonly string[]) =>
  `the same command runs them again, with another ${['--out-dir', ...others].join(', ')} and no --id, and with`;

/** What is in the folder, and how to run the rest of it. */
export function filledLines(filled: Filled | undefined): string[] {
  if (!filled) return [];
  const { name, written, cut, continues, others } = filled;
  if (cut) return [`--out-dir ${name} is not complete: ${cut.message}`];
  if (!written) return [];
  const { counts, failed, pending, isCut } = written;
  const rest = [
    ...rerunLines(name, 'what failed', failed),
    ...rerunLines(name, 'what is pending', pending),
  ];
  const unreadable = [...failed, ...pending].filter((file) => file.unreadable !== undefined);
  return [
    `${name}: ${number(counts.succeeded)} succeeded, ${number(counts.failed)} failed, ${number(counts.pending)} pending (manifest.json)`,
    ...(continues || rest.length === 0 ? [] : [again(others), ...rest]),
    ...unreadable.map((file) => `${file.name} cannot be an --input: ${file.unreadable}`),
    ...(isCut ? ['the input was not read to its end: the rest is in none of these files'] : []),
  ];
}

/** A line for each `--split`: nearly always one. */
function rerunLines(folder: string, what: string, files: readonly ListedFile[]): string[] {
  const readable = files.filter((file) => file.unreadable === undefined);
  return [...new Set(readable.map(({ split }) => split))].map((split = '') => {
    const names = readable.filter((file) => file.split === split).map((file) => file.name);
    const paths = names.map((file) => quoted(`${folder.replace(/\/$/, '')}/${file}`)).join(' ');
    return `  ${what}: --input ${paths} --split ${quoted(split)}`;
  });
}

/** The same as fields of JSON. */
export function filledJson(filled: Filled | undefined): Record<string, unknown> {
  if (!filled) return {};
  const { name, written, cut } = filled;
  return { outDir: name, outDirCounts: written?.counts, outDirError: cut?.message };
}
