// What workers make of a server that loses its last writes, again and again while they work: real workers,
// one server, requests whose sub-requests are retried now and then.
//
//   node test/scale/rollbacks.mjs [--rollbacks 200] [--items 1500] [--workers 3] [--json]
//
// Each rollback takes 5 to 40 ms of writes away, of all keys at once. Exit code 1 when a sub-request was
// recorded twice or not at all, a count is wrong, or a request does not end.
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { startRedis } from '@piecework/embedded';
import { readFields } from '@piecework/protocol';
import { Redis } from 'ioredis';
import { Piecework, Worker } from 'piecework';
import { keepState } from './lost-writes.mjs';

const { values } = parseArgs({
  options: {
    rollbacks: { type: 'string', default: '200' },
    items: { type: 'string', default: '1500' },
    workers: { type: 'string', default: '3' },
    json: { type: 'boolean', default: false },
  },
});
const [rollbacks, items, workers] = [values.rollbacks, values.items, values.workers].map(Number);
/** Of one request: so many, as the last ones may find nothing left to take away. */
const PER_REQUEST = 10;
const REQUESTS_AT_ONCE = 2;
const ENDS_WITHIN_MS = 120_000;

const server = await startRedis({});
const client = new Redis(server.url);
const pw = new Piecework({ redis: server.url, queue: 'rollbacks' });
const between = (from, to) => from + Math.random() * (to - from);
const quiet = Object.fromEntries(
  ['trace', 'debug', 'info', 'warn', 'error', 'fatal'].map((level) => [level, () => {}]),
);
quiet.child = () => quiet;
let runs = 0;
const fleet = Array.from(
  { length: workers },
  () =>
    new Worker({
      ...{ redis: server.url, queue: 'rollbacks', concurrency: 8, leaseMs: 2_000, logger: quiet },
      async handler(n) {
        runs += 1;
        await sleep(between(1, 30));
        if (Math.random() < 0.05) throw new Error('again');
        return n;
      },
    }),
);
await Promise.all(fleet.map((worker) => worker.start()));

const FIELDS = ['status', 'succeeded', 'failed', 'contested'];
const stateOf = (id) => readFields(client, { request: `request:{${id}}` }, FIELDS);

async function submit() {
  const payloads = Array.from({ length: items }, (_, n) => n);
  const options = { limit: 8 * workers, attempts: 20, retentionMs: 600_000 };
  const { id } = await pw.submit(payloads, options);
  return id;
}

/** How often each index was recorded, by the stream of results as it is. */
async function recordsOf(id) {
  const times = new Map();
  const key = `results:{${id}}`;
  const records =
    (await client.type(key)) === 'string'
      ? [['', ['ok', await client.get(key)]]]
      : await client.xrange(key, '-', '+');
  for (const [, fields] of records) {
    for (let i = 0; i < fields.length; i += 2) {
      const texts =
        fields[i] === 'ok' ? fields[i + 1].split('\x1e').slice(1) : [fields[i].slice(1)];
      for (const text of texts) {
        const index = Number.parseInt(text, 10);
        times.set(index, (times.get(index) ?? 0) + 1);
      }
    }
  }
  return times;
}

async function judge(id) {
  const state = await stateOf(id);
  const times = await recordsOf(id);
  const twice = [...times].filter(([, n]) => n > 1).map(([index]) => index);
  const missing = items - times.size;
  const wrongCounts = Number(state.succeeded) !== items || Number(state.failed) !== 0;
  return { twice, missing, wrongCounts, contested: state.contested === '1' };
}

const found = {
  rollbacks: 0,
  requests: 0,
  twice: 0,
  missing: 0,
  wrongCounts: 0,
  stuck: 0,
  contested: 0,
};
const beganMs = performance.now();
while (found.rollbacks < rollbacks) {
  const ids = await Promise.all(Array.from({ length: REQUESTS_AT_ONCE }, submit));
  for (let n = 0; n < PER_REQUEST && found.rollbacks < rollbacks; n += 1) {
    await sleep(between(0, 60));
    const putBack = await keepState(client);
    await sleep(between(5, 40));
    await putBack();
    found.rollbacks += 1;
  }
  const until = performance.now() + ENDS_WITHIN_MS;
  for (const id of ids) {
    while ((await stateOf(id)).status !== 'complete' && performance.now() < until) await sleep(20);
    found.requests += 1;
    if ((await stateOf(id)).status !== 'complete') found.stuck += 1;
    const { twice, missing, wrongCounts, contested } = await judge(id);
    found.twice += twice.length;
    found.missing += missing;
    found.wrongCounts += wrongCounts ? 1 : 0;
    found.contested += contested ? 1 : 0;
  }
}
const seconds = (performance.now() - beganMs) / 1_000;
await Promise.all(fleet.map((worker) => worker.close()));
await pw.close();
client.disconnect();
await server.close();

const { twice, missing, wrongCounts, stuck } = found;
const figures = { ...found, items, runs, seconds: Number(seconds.toFixed(1)) };
console.log(values.json ? JSON.stringify(figures) : figures);
process.exitCode = twice + missing + wrongCounts + stuck > 0 ? 1 : 0;
