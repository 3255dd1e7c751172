// Submits every line of a file, `limit:part:part:…`, as a request of its own with its own limit, and
// starts worker processes that print the object made of each part.
//
//   node examples/requests-file/requests-file.mjs examples/requests-file/sample.txt
//
// Standard output: one JSON line for each part. Standard error: one line for each request.
import { fileURLToPath } from 'node:url';
import { WorkerFleet } from '@piecework/cli';
import { resolveRedisUrl } from '@piecework/embedded';
import { nanoid } from 'nanoid';
import { pMapIterable } from 'p-map';
import { AbortError, NotFoundError, Piecework } from 'piecework';
import { readArguments } from './arguments.mjs';
import { linesOf } from './lines.mjs';
import { greatestOverlap } from './overlap.mjs';

const options = readArguments();
const run = `requests-file-${nanoid(8)}`;
const queue = options.queue ?? run;
const say = (text) => console.error(text);

// Whatever goes wrong ends up here: what is open is then dropped, and the program fails.
const stopping = new AbortController();
const { signal } = stopping;
for (const name of ['SIGINT', 'SIGTERM']) {
  // A second one finds no listener and ends the program at once.
  process.once(name, () => stopping.abort(new Error(`stopped by ${name}`)));
}
process.stdout.on('error', (error) => stopping.abort(error));

/** First pass: how many requests there are. Names every wrong line; then nothing is submitted. */
async function countRequests(file) {
  let requests = 0;
  let wrong = 0;
  for await (const { line, error } of linesOf(file)) {
    if (error) {
      wrong += 1;
      say(`${file}, line ${line}: ${error.message}`);
    } else requests += 1;
  }
  if (wrong === 0) return requests;
  say(`${wrong} wrong; nothing was submitted`);
  process.exit(2);
}

/** Second pass: the requests, one by one, so that a file of any length takes little memory. */
async function* requestsOf(file, requests) {
  let before = 0;
  for await (const { line, limit, parts, error } of linesOf(file)) {
    if (signal.aborted) return;
    if (error) throw new Error(`line ${line} was changed meanwhile: ${error.message}`);
    // 'line': up to 100 requests have a priority each, more share the 100 evenly.
    const byLine = requests <= 100 ? before : Math.floor((100 * before) / requests);
    yield { line, limit, parts, priority: options.priority === 'line' ? byLine : options.priority };
    before += 1;
  }
}

/** The whole life of one request: submit, await the completion, read the results, drop. */
async function live(pw, { line, limit, parts, priority }) {
  const id = `${run}-${line}`;
  const request = pw.request(id);
  const row = { id, limit, priority, parts: parts.length, outcome: 'stopped', inFlight: 0 };
  try {
    const objects = parts.map((part, index) => ({ request: line, part, index }));
    await pw.submit(objects, { id, limit, priority, signal });
    row.outcome = (await request.completion({ signal })).status;
    const spans = [];
    for await (const { value } of request.results({ signal })) spans.push(value);
    row.inFlight = greatestOverlap(spans);
  } catch (error) {
    if (!(error instanceof AbortError)) stopping.abort(error);
  }
  await request.drop().catch((error) => {
    if (!(error instanceof NotFoundError)) stopping.abort(error);
  });
  return row;
}

const show = (id, ...columns) =>
  say(`${id.padEnd(run.length + 8)}${columns.map((text) => String(text).padStart(11)).join('')}`);

async function main() {
  const requests = await countRequests(options.file);
  const redis = options.redis
    ? { url: options.redis, close: async () => {} }
    : await resolveRedisUrl({ onStatus: say });
  const pw = new Piecework({ redis: redis.url, queue });
  let fleet;
  try {
    process.env.WORK_MS = String(options.workMs);
    fleet = await WorkerFleet.start({
      redis: redis.url,
      queue,
      handler: fileURLToPath(new URL('./handler.mjs', import.meta.url)),
      processes: options.processes,
      // What still runs when the workers are stopped was dropped: nobody waits for it.
      flags: ['--concurrency', String(options.concurrency), '--drain-ms', '0'],
      onLine: (line) => console.log(line),
    });
    fleet.lost.catch((error) => stopping.abort(error));
    show('request', 'limit', 'priority', 'parts', 'outcome', 'in flight');
    const rows = pMapIterable(requestsOf(options.file, requests), (one) => live(pw, one), {
      concurrency: options.window,
    });
    for await (const { id, limit, priority, parts, outcome, inFlight } of rows) {
      show(id, limit, priority, parts, outcome, inFlight);
      if (outcome !== 'succeeded') process.exitCode = 1;
    }
    signal.throwIfAborted();
  } finally {
    await fleet?.close();
    await pw.close();
    await redis.close();
  }
}

await main().catch((error) => {
  say(`requests-file: ${error.message}`);
  process.exitCode = 1;
});
