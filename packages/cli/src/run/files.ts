import type { FailureKind, ResultsOptions } from '@piecework/notifier';
import { InvalidOptionError } from '@piecework/protocol/contract';
import type { RequestHandle } from 'piecework';
import { BadRows } from '../output/bad-rows.js';
import { failureKinds } from '../output/failure-kinds.js';
import { Output, OutputError, writeResults } from '../output/output.js';
import { writeOwnFile } from '../output/own-file.js';
import { say } from '../terminal/print.js';

/** The files that a run writes. */
export interface RunFiles {
  readonly out: Output | undefined;
  readonly failures: Output | undefined;
  readonly joblog: Output | undefined;
  readonly badRows: BadRows | undefined;
}

interface FileNames {
  readonly out?: string;
  readonly failures?: string;
  readonly joblog?: string;
  readonly badRows?: string;
  readonly json: boolean;
}

/** What a run leaves, also when its Redis ends with it. */
export interface Left {
  /** The failures by kind. */
  readonly kinds: readonly FailureKind[];
  /** The file with all failures. */
  readonly failuresFile: string | undefined;
  /** The file with all results, where `--out` does not have them. */
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
  readonly files: RunFiles;
  /** Why `--out` does not have all results. */
  readonly cut: OutputError | undefined;
  /** Whether Redis continues to run after this command. */
  readonly outlives: boolean;
  readonly failed: boolean;
}

/**
 * Opens the files before there is anything to write. `again`: `--out`, `--joblog` and `--bad-rows` may be continued.
 * @throws InvalidOptionError
 */
export async function openFiles(
  { out, failures, joblog, badRows, json }: FileNames,
  again: boolean,
): Promise<RunFiles> {
  const opened: { -readonly [name in keyof RunFiles]: RunFiles[name] } = {
    ...{ out: undefined, failures: undefined, joblog: undefined, badRows: undefined },
  };
  try {
    if (out !== undefined) opened.out = await Output.open('--out', out, again);
    if (failures !== undefined) opened.failures = await Output.open('--failures', failures);
    if (joblog !== undefined) opened.joblog = await Output.open('--joblog', joblog, again);
    if (badRows !== undefined) opened.badRows = await BadRows.open(badRows, json, again);
  } catch (error) {
    await abandon(opened);
    throw error;
  }
  return opened;
}

/** Refuses to overwrite what an earlier run wrote. @throws InvalidOptionError, which says `why` this run begins anew */
export async function expectNew({ out, joblog, badRows }: RunFiles, why: string): Promise<void> {
  const files = { '--out': out, '--joblog': joblog, '--bad-rows': badRows };
  for (const [flag, file] of Object.entries(files)) {
    if (!file || (await file.size()) === 0) continue;
    const allowed = `a new or empty file, as this run begins from the start: ${why}`;
    throw new InvalidOptionError(flag, file.name, allowed);
  }
}

/** Leaves the files as they were in which nothing was written. */
export async function abandon(files: RunFiles): Promise<void> {
  for (const file of [files.out, files.failures, files.joblog]) await file?.abandon();
  await files.badRows?.close();
}

/** Writes failures and results of a complete request that would be lost, or that `--failures` asks for. */
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

/** Writes the failures into `--failures`; without that, into a new file when Redis ends with this run. */
async function leaveFailures(
  handle: RequestHandle,
  { files, failed, outlives }: Ended,
): Promise<Omit<Left, 'resultsFile'>> {
  let kinds: FailureKind[] = [];
  const write = async (output?: Output) => {
    try {
      if (failed)
        kinds = await failureKinds(
          handle.failures({ payload: output !== undefined, jsonText: true }),
          output,
        );
    } finally {
      await output?.close();
    }
  };
  const named = files.failures;
  if (named) {
    try {
      await write(named);
      return { kinds, failuresFile: failed ? named.name : undefined };
    } catch (error) {
      if (!(error instanceof OutputError)) throw error;
      say(error.message);
    }
  }
  const name = `piecework-${handle.id}-failures.ndjson`;
  const failuresFile = failed && !outlives ? await writeOwnFile(name, write) : undefined;
  if (kinds.length === 0) await write();
  return { kinds, failuresFile };
}
