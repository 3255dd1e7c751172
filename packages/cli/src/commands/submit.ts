import type { RequestOptions } from '@piecework/producer';
import { AbortError, InvalidOptionError, PieceworkError } from '@piecework/protocol/contract';
import type { Command } from 'commander';
import { commonFlags } from '../flags/common-flags.js';
import { waitFlag } from '../flags/control-flags.js';
import { addFlags, readFlags } from '../flags/read-flags.js';
import { existingRedis } from '../flags/redis-url.js';
import { requestFlags, requestOf } from '../flags/request-flags.js';
import { outFlags } from '../flags/run-flags.js';
import type { Input } from '../input/input.js';
import type { InputValues } from '../input/input-values.js';
import type { BadRows } from '../output/bad-rows.js';
import { keptLines, shownUrl } from '../output/kept.js';
import { type ResultFormat, resultFormats } from '../output/result-format.js';
import { print, say } from '../terminal/print.js';
import { onStopSignals } from '../terminal/stop-signals.js';
import { withCause } from '../terminal/with-cause.js';
import { openPiecework } from './open-piecework.js';

interface SubmitValues extends RequestOptions, InputValues {
  redis?: string;
  queue: string;
  shards: number;
  json: boolean;
  dryRun: boolean;
  retentionMs: number;
  out?: string;
  format?: ResultFormat;
  wait: boolean;
}

const STOPPED =
  'stopped: the request is cancelled if it was made already; items that were in may have run';

/** Says what became of a submission that was cut off, and what to do: no other process can continue it. */
function unfinished(error: unknown, id: string | undefined): unknown {
  if (error instanceof AbortError) return new PieceworkError(STOPPED, { code: error.code });
  if (id === undefined || !(error instanceof PieceworkError) || !error.retryable) return error;
  const advice = `a part of it may have been submitted; drop that before you submit it again: piecework drop ${id}`;
  const { code, retryable } = error;
  return new PieceworkError(`${withCause(error)}; ${advice}`, { code, retryable, cause: error });
}

/** The reader of the results has closed the output: nobody waits any more. */
const unread = ({ message, code }: PieceworkError, id: string): PieceworkError =>
  new PieceworkError(`${message}; ${id} runs on: piecework watch ${id}`, { code });

/** The same items. The file begins when the second one is asked for: then the request is there. */
async function* beginning(items: Input, badRows: BadRows): AsyncGenerator<unknown> {
  for await (const item of items) {
    yield item;
    await badRows.begin();
  }
}

/** Prints the next commands after failures. */
function sayNext(id: string, { redis, queue, shards }: SubmitValues): void {
  const at = redis === undefined ? '' : ` --redis ${shownUrl(redis)}`;
  const of = `${queue === 'req' ? '' : ` --queue ${queue}`}${shards === 1 ? '' : ` --shards ${shards}`}`;
  say(`  what failed, and where:  piecework failures ${id} --stack${of}${at}`);
  say(`  to run it again:         piecework redrive ${id} --wait${of}${at}`);
}

/** `piecework submit`: submits a request to workers that run elsewhere. */
export function submitCommand(program: Command): void {
  const command = program
    .command('submit')
    .description('submit a request to workers that run elsewhere');
  const groups = [commonFlags, requestFlags, outFlags, [waitFlag]];
  addFlags(command, ...groups).action(async (given: Record<string, unknown>) => {
    const values = readFlags<SubmitValues>(given, ...groups);
    if (!values.dryRun) existingRedis(values.redis);
    if (values.out !== undefined && !values.wait) {
      throw new InvalidOptionError('--out', values.out, 'together with --wait');
    }
    if (values.out !== undefined && values.results === 'discard') {
      throw new InvalidOptionError('--results', 'discard', 'keep, as --out wants them');
    }
    const options = requestOf({ ...values });
    const { out, format } = values;
    if (format !== undefined && out === undefined)
      throw new InvalidOptionError('--format', format, 'together with --out');
    // Loaded on demand: help and completion need only the flags.
    const [
      { openInput },
      { startLine },
      { dryRun },
      { writeResultsLive },
      { leftOutJson, leftOutLine },
      { abandon, ALL, openFiles },
    ] = await Promise.all([
      import('../input/input.js'),
      import('../output/start-line.js'),
      import('../work/dry-run.js'),
      import('../output/output.js'),
      import('../output/bad-rows.js'),
      import('../run/files.js'),
    ]);
    using items = await openInput(values, 'submit');
    if (values.runAt !== undefined && !values.json) say(startLine(values.runAt));
    if (values.dryRun) return await dryRun(items, values);
    const files = await openFiles(values, false);
    const { out: output, badRows } = files;
    items.onLeftOut((one) => badRows?.add(one));
    const stopping = new AbortController();
    const unlisten = onStopSignals(() => stopping.abort());
    const unbegun = async (error: unknown) => {
      await abandon(files);
      throw items.blame(error);
    };
    await using pw = await openPiecework(values).catch(unbegun);
    const request = await pw
      .submit(badRows ? beginning(items, badRows) : items, { ...options, signal: stopping.signal })
      .catch((error: unknown) => unbegun(unfinished(error, values.id)));
    unlisten();
    if (request.created) await badRows?.begin();
    await badRows?.end();
    await badRows?.close();
    const leftOut = request.created ? badRows : undefined;
    const leftOutText = leftOutLine(leftOut);
    if (leftOutText && !values.json) say(leftOutText);
    if (leftOut?.count) process.exitCode = 1;
    if (!request.created && !values.json)
      say(
        `${request.id} exists already: nothing was added, and this input was not compared with it`,
      );
    if (!values.wait) {
      print(values.json ? JSON.stringify({ id: request.id, ...leftOutJson(leftOut) }) : request.id);
      return;
    }
    if (!values.json)
      say(
        `${request.id} is ${request.created ? 'submitted' : 'awaited'}; Ctrl-C ends this command only`,
      );
    const { showProgress } = await import('../terminal/progress-bar.js');
    const [outcome, , cut] = await Promise.all([
      request.completion(),
      values.json ? undefined : showProgress(request.progress()),
      output &&
        writeResultsLive(
          request.results(ALL),
          output,
          (error) => {
            if (error.isClosed) throw unread(error, request.id);
            if (!values.json) say(`${error.message}; the results stay in Redis`);
          },
          format && resultFormats[format],
        ),
    ]);
    const { status, counts, generation } = outcome;
    const end = { id: request.id, status, counts, generation, ...leftOutJson(leftOut) };
    const text = JSON.stringify(end);
    if (values.json) print(text);
    else say(`${request.id} ${status}: ${counts.succeeded} of ${counts.total} succeeded`);
    if (counts.failed > 0 && !values.json && !cut) sayNext(request.id, values);
    if (cut && values.json) throw cut;
    if (cut) {
      const { redis, retentionMs } = values;
      const kept = { id: request.id, redis, retentionMs, failed: counts.failed > 0, results: true };
      for (const line of keptLines(kept)) say(line);
    }
    process.exitCode = status === 'succeeded' && !cut && !leftOut?.count ? 0 : 1;
  });
}
