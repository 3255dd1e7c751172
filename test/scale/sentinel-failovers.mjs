// What of the acknowledged submissions and settlements is gone after failovers by Sentinel, under load? Real
// redis-server and Sentinel processes, one process of clients.
//
//   node test/scale/sentinel-failovers.mjs [--failovers 4] [--kill] [--replicas 1] [--min-replicas 0]
//     [--durability none|replica] [--detector] [--passed-in] [--fail-above <n>] [--json]
//
// --kill kills the master; otherwise Sentinel hands over (SENTINEL FAILOVER). --detector sets `failoverDetector` of
// ioredis; --passed-in passes ioredis clients to Piecework. Exit code 1 when more than --fail-above things are gone.
import { randomUUID } from 'node:crypto';
import { parseArgs } from 'node:util';
import { Worker } from '@piecework/worker';
import { Redis } from 'ioredis';
import { Piecework } from 'piecework';
import { startWatched } from '../../tools/chaos/dist/sentinel/watched.js';

/** Before the first failover, between two of them, and after the last one: until each Sentinel demoted the former master. */
const WORKING_MS = 3_000;
const AFTER_MS = 14_000;
const SUBMITTERS = 8;
/** Between two submissions of one submitter, in ms. */
const PAUSE_MS = 80;
/** How many requests the judge reads at once. */
const READS = 50;
const PULLERS = 24;
const ITEMS = 4;

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const { values } = parseArgs({
  options: {
    failovers: { type: 'string', default: '4' },
    kill: { type: 'boolean', default: false },
    replicas: { type: 'string', default: '1' },
    'min-replicas': { type: 'string', default: '0' },
    durability: { type: 'string', default: 'none' },
    detector: { type: 'boolean', default: false },
    'passed-in': { type: 'boolean', default: false },
    'fail-above': { type: 'string', default: 'Infinity' },
    json: { type: 'boolean', default: false },
  },
});
const failovers = Number(values.failovers);
const say = (line) => values.json || console.error(line);

const watched = await startWatched({
  sentinels: 3,
  replicas: Number(values.replicas),
  args: [
    ...['--min-replicas-to-write', values['min-replicas'], '--min-replicas-max-lag', '10'],
    ...['--repl-diskless-sync-delay', '0'],
  ],
});
const settings = { ...watched.input, ...(values.detector ? { failoverDetector: true } : {}) };
const own = [];
const redis = () => {
  if (!values['passed-in']) return settings;
  const client = new Redis(settings);
  client.on('error', () => {});
  own.push(client);
  return client;
};
const queue = 'failovers';
const pw = new Piecework({ redis: redis(), queue });
const worker = new Worker({ redis: redis(), queue, concurrency: PULLERS, leaseMs: 5_000 });

/** When each id was acknowledged; when the settlement of each 'id index' was, and with which value. */
const submitted = new Map();
const settled = new Map();
const refused = new Map();
let stopping = false;

async function submitOn(number) {
  for (let i = 0; !stopping; i += 1) {
    const id = `f-${number}-${i}`;
    try {
      await pw.submit(Array(ITEMS).fill(0), {
        ...{ id, durability: values.durability, unavailableMs: 20_000, retentionMs: 3_600_000 },
      });
      submitted.set(id, performance.now());
    } catch (error) {
      refused.set(error.code, (refused.get(error.code) ?? 0) + 1);
    }
    await sleep(PAUSE_MS);
  }
}

async function settleOn() {
  for await (const one of worker.subRequests()) {
    const value = randomUUID();
    one.succeed(value);
    void one.settled.then((how) => {
      const key = `${one.requestId} ${one.index}`;
      // One that runs again after that was lost: the value of the first run has to be kept.
      if (how === 'reported' && !settled.has(key))
        settled.set(key, { value, at: performance.now() });
    });
  }
}

/** What is kept of a request, once it is complete: index → value. */
async function resultsOf(id) {
  const kept = new Map();
  const request = pw.request(id);
  await request.completion({ timeoutMs: 60_000 });
  for await (const { index, value } of request.results()) kept.set(index, value);
  return kept;
}

/** The longest time without an acknowledgement since the failover was asked for, in ms. */
function longestPause(from) {
  const times = [...submitted.values(), ...[...settled.values()].map(({ at }) => at)]
    .filter((at) => at > from)
    .sort((a, b) => a - b);
  return times.reduce((most, at, i) => Math.max(most, at - (times[i - 1] ?? from)), 0);
}

try {
  const pulling = Array.from({ length: PULLERS }, settleOn);
  const submitting = Array.from({ length: SUBMITTERS }, (_, n) => submitOn(n));
  const pauses = [];
  for (let i = 0; i < failovers; i += 1) {
    await sleep(WORKING_MS);
    const from = performance.now();
    const former = await watched.masterPort();
    const port = values.kill ? await watched.killMaster() : await watched.handOver();
    if (values.kill) await watched.startAgain(former);
    await sleep(AFTER_MS);
    pauses.push(Math.round(longestPause(from)));
    say(
      `failover ${i + 1}: master at ${port}; ${submitted.size} submitted, ${settled.size} settled`,
    );
  }
  stopping = true;
  await Promise.all(submitting);
  await sleep(WORKING_MS);
  const acknowledged = new Map(settled);
  const direct = new Redis({ host: '127.0.0.1', port: await watched.masterPort() });
  const lostSubmissions = [];
  for (const id of submitted.keys())
    if ((await direct.exists(`request:{${id}}`)) === 0) lostSubmissions.push(id);
  direct.disconnect();
  const gone = new Set(lostSubmissions);
  const lostSettlements = [];
  const left = new Set([...acknowledged.keys()].map((key) => key.split(' ')[0]));
  const read = async () => {
    for (const id of left) {
      left.delete(id);
      const kept = gone.has(id) ? new Map() : await resultsOf(id);
      for (let index = 0; index < ITEMS; index += 1) {
        const was = acknowledged.get(`${id} ${index}`);
        if (was && kept.get(index) !== was.value) lostSettlements.push(`${id} ${index}`);
      }
    }
  };
  await Promise.all(Array.from({ length: READS }, read));
  await worker.close();
  await Promise.all(pulling);
  const found = {
    ...{ failovers, submitted: submitted.size, lostSubmissions: lostSubmissions.length },
    ...{ settled: acknowledged.size, lostSettlements: lostSettlements.length, pauses },
    refused: Object.fromEntries(refused),
  };
  console.log(values.json ? JSON.stringify(found) : found);
  const lost = lostSubmissions.length + lostSettlements.length;
  process.exitCode = lost > Number(values['fail-above']) ? 1 : 0;
} finally {
  stopping = true;
  await worker.close({ timeoutMs: 0 }).catch(() => {});
  await pw.close().catch(() => {});
  for (const client of own) client.disconnect();
  await watched[Symbol.asyncDispose]();
}
