import type { FailureKind, ResultsOptions } from '@piecework/notifier';
import { InvalidOptionError } from '@piecework/protocol/contract';
import type { RequestHandle } from 'piecework';
import { OutDir, type Written } from '../folder/out-dir.js';
import { BadRows } from '../output/bad-rows.js';
import { failureKinds } from '../output/failure-kinds.js';
import { Output, type OutputError, writeResults } from '../output/output.js';
import { writeOwnFile } from '../output/own-file.js';
import { say } from '../terminal/print.js';

/** The files that a run writes. */
export interface RunFiles {
  readonly out: Output | undefined;
  readonly outDir: OutDir | undefined;
  readonly joblog: Output | undefined;
  readonly badRows: BadRows | undefined;
}

interface FileNames {
  readonly out?: string;
  readonly outDir?: string;
  readonly joblog?: string;
  readonly badRows?: string;
  readonly id?: string;
  readonly json: boolean;
}

/** What a run leaves, also when its Redis ends with it. */
export interface Left {
  /** The failures by kind. */
  readonly kinds: readonly FailureKind[];
  /** The file with all failures, where no `--out-dir` has them. */
  readonly failuresFile: string | undefined;
  /** The file with all results, where neither `--out` nor `--out-dir` has them. */
  readonly resultsFile: string | undefined;
}

/** The results that `--out` gets. */
export const ALL = {
  order: 'index',
  failed: true,
  live: false,
  jsonText: true,
} as const satisfies ResultsOptions;

interface Ended {
  /** What `--out-dir` has, if it was written. */
  readonly written: Written | undefined;
  /** Why an output does not have all results. */
  readonly cut: OutputError | undefined;
  /** Whether Redis continues to run after this command. */
  readonly outlives: boolean;
  readonly failed: boolean;
}

/**
 * Opens the files before there is anything to write. `again`: they may be continued.
 * @throws InvalidOptionError
 */
export async function openFiles(
  { out, outDir, joblog, badRows, id, json }: FileNames,
  again: boolean,
): Promise<RunFiles> {
  const opened: { -readonly [name in keyof RunFiles]: RunFiles[name] } = {
    ...{ out: undefined, outDir: undefined, joblog: undefined, badRows: undefined },
  };
  try {
    if (outDir !== undefined) opened.outDir = await OutDir.open(outDir, again ? id : undefined);
    if (out !== undefined) opened.out = await Output.open('--out', out, again);
    if (joblog !== undefined) opened.joblog = await Output.open('--joblog', joblog, again);
    if (badRows !== undefined) opened.badRows = await BadRows.open(badRows, json, again);
  } catch (error) {
    await abandon(opened);
    throw error;
  }
  return opened;
}

/** Refuses to overwrite what an earlier run wrote. @throws InvalidOptionError, which says `why` this run begins anew */
export async function expectNew(
  { out, outDir, joblog, badRows }: RunFiles,
  why: string,
): Promise<void> {
  const files = { '--out': out, '--out-dir': outDir, '--joblog': joblog, '--bad-rows': badRows };
  for (const [flag, file] of Object.entries(files)) {
    if (!file || (await file.size()) === 0) continue;
    const allowed = `a new or empty one, as this run begins from the start: ${why}`;
    throw new InvalidOptionError(flag, file.name, allowed);
  }
}

/** Leaves the files as they were in which nothing was written. */
export async function abandon(files: RunFiles): Promise<void> {
  for (const file of [files.out, files.joblog]) await file?.abandon();
  await files.badRows?.close();
  await files.outDir?.close();
}

/** Writes failures and results of a complete request that would be lost. */
export async function leave(handle: RequestHandle, ended: Ended): Promise<Left> {
  const { cut, outlives } = ended;
  const failures = await leaveFailures(handle, ended).catch((error: Error) => {
    say(`the failures cannot be read: ${error.message}`);
    return { kinds: [], failuresFile: undefined };
  });
  const own = (output: Output) => writeResults(handle.results(ALL), output);
  const resultsFile =
    cut && !outlives ? await writeOwnFile(`piecework-${handle.id}-results.ndjson`, own) : undefined;
  return { ...failures, resultsFile };
}

/** Counts the failures by kind, and writes them into a new file when they would be lost. */
async function leaveFailures(
  handle: RequestHandle,
  { written, failed, outlives }: Ended,
): Promise<Omit<Left, 'resultsFile'>> {
  if (written || !failed) return { kinds: written?.kinds ?? [], failuresFile: undefined };
  let kinds: FailureKind[] = [];
  const write = async (output?: Output) => {
    try {
      kinds = await failureKinds(
        handle.failures({ payload: output !== undefined, jsonText: true }),
        output,
      );
    } finally {
      await output?.close();
    }
  };
  const name = `piecework-${handle.id}-failures.ndjson`;
  const failuresFile = outlives ? undefined : await writeOwnFile(name, write);
  if (kinds.length === 0) await write();
  return { kinds, failuresFile };
}
