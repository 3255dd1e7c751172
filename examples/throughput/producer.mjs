// Submits requests from several processes and prints how many sub-requests a second they append.
//
//   node examples/throughput/producer.mjs --redis redis://localhost --processes 2 --requests 8
import { fileURLToPath } from 'node:url';
import { nanoid } from 'nanoid';
import pMap from 'p-map';
import { NotFoundError, Piecework } from 'piecework';
import { integer } from '../option-values.mjs';
import { optionsOf, programOf } from './arguments.mjs';
import { Processes } from './processes.mjs';
import { printRates } from './rates.mjs';

const program = programOf('producer.mjs', 'Submits requests and prints rates.')
  .option('--requests <n>', 'requests, shared among the processes', integer(1, 1_000_000), 4)
  .option('--sub-requests <n>', 'sub-requests of each request', integer(1, 1e9), 50_000)
  .option('--payload-bytes <n>', 'bytes of each payload', integer(0, 1_000_000), 100)
  .option('--limit <n>', 'most in flight at once, of each request', integer(1, 1_000_000), 1_000)
  .option('--priority <n>', '0 is served first, 99 last', integer(0, 99), 50)
  .option('--wait', 'wait until all are complete, then drop them');
const { processes, requests, wait, ...options } = optionsOf(program);

const run = `throughput-${nanoid(8)}`;
const ids = Array.from({ length: requests }, (_, i) => `${run}-${i}`);
const shares = Array.from({ length: processes }, (_, process) => ({
  ...options,
  ids: ids.filter((_, i) => i % processes === process),
}));
const stopping = new AbortController();
const { signal } = stopping;
const pw = new Piecework({ redis: options.redis, queue: options.queue });
const producers = new Processes(
  fileURLToPath(new URL('./producer-process.mjs', import.meta.url)),
  shares,
);
for (const name of ['SIGINT', 'SIGTERM']) {
  // A second one finds no listener and ends the program at once; its children end with it.
  process.once(name, () => {
    stopping.abort(new Error(`stopped by ${name}`));
    void producers.stop();
  });
}
const each = (work) => pMap(ids, work, { concurrency: 100, stopOnError: false });

try {
  const endRates = printRates('appended', () => producers.total);
  await producers.ended.finally(endRates);
  signal.throwIfAborted();
  if (wait) {
    const outcomes = await each((id) => pw.request(id).completion({ signal }));
    const settled = outcomes.reduce((sum, { counts }) => sum + counts.succeeded, 0);
    console.log(`${outcomes.length} requests complete, ${settled} sub-requests succeeded`);
    if (outcomes.some(({ status }) => status !== 'succeeded')) process.exitCode = 1;
  }
} catch (error) {
  stopping.abort(error);
  console.error(`producer: ${signal.reason.message}`);
  process.exitCode = 1;
} finally {
  await producers.stop();
  // Half-submitted requests are of no use to anybody.
  if (wait || signal.aborted) {
    await each((id) =>
      pw
        .request(id)
        .drop()
        .catch((error) => {
          if (!(error instanceof NotFoundError)) throw error;
        }),
    ).catch((error) => console.error(`producer: not all were dropped: ${error.message}`));
  }
  await pw.close();
}
