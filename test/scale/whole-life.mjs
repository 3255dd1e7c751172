// One request through all that can happen to it: sub-requests that fail once, and some for good, the
// limit changed twice, a pause, a redrive. In the end every count has to be exact, and at no time may
// more have run than the limit allowed, once what ran before a change of it had ended.
//
//   node test/scale/whole-life.mjs [--items 100000] [--workers 4]
//   node test/scale/whole-life.mjs --kill-every-ms 1000        the same under kill -9
import { ok, strictEqual } from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Redis } from 'ioredis';
import { Piecework } from 'piecework';
import { startRedis } from 'piecework/embedded';

const { values } = parseArgs({
  options: {
    items: { type: 'string', default: '100000' },
    workers: { type: 'string', default: '4' },
    'kill-every-ms': { type: 'string' },
  },
});
const items = Number(values.items);
const fleet = Number(values.workers);
const killEveryMs = values['kill-every-ms'] ? Number(values['kill-every-ms']) : undefined;
const folder = mkdtempSync(join(tmpdir(), 'piecework-life-'));
const program = fileURLToPath(new URL('./whole-life-worker.mjs', import.meta.url));
const crew = new Set();
let over = false;
let kills = 0;
let started = 0;

function hire(url) {
  started += 1;
  const worker = spawn(process.execPath, [program, url, join(folder, `${started}.txt`)], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  crew.add(worker);
  worker.once('exit', () => {
    crew.delete(worker);
    if (!over) hire(url);
  });
}

async function killNowAndThen() {
  while (!over) {
    await sleep(killEveryMs);
    const victims = [...crew].filter(({ pid }) => pid);
    const victim = victims[kills % victims.length];
    if (over || !victim) continue;
    kills += 1;
    process.kill(victim.pid, 'SIGKILL');
  }
}

/** Every run, as [from, to] in ms of the server's clock. */
const runs = () =>
  readdirSync(folder)
    .flatMap((name) => readFileSync(join(folder, name), 'utf8').trimEnd().split('\n'))
    .filter(Boolean)
    .map((line) => line.split(' ').map(Number).slice(1, 3));

/** The most that ran at once from `from` to `to`. */
function mostAtOnce(all, from, to) {
  const steps = all
    .filter(([a, b]) => b > from && a < to)
    .flatMap(([a, b]) => [
      [a, 1],
      [b, -1],
    ])
    .sort(([a, x], [b, y]) => a - b || x - y);
  let [n, most] = [0, 0];
  for (const [at, by] of steps) {
    n += by;
    if (at >= from && at < to) most = Math.max(most, n);
  }
  return most;
}

const server = await startRedis({});
const redis = new Redis(server.url);
const now = async () => {
  const [seconds, micros] = await redis.time();
  return Number(seconds) * 1_000 + Number(micros) / 1_000;
};
const pw = new Piecework({ redis: server.url });
try {
  for (let i = 0; i < fleet; i += 1) hire(server.url);
  if (killEveryMs) void killNowAndThen();
  const request = await pw.submit(
    Array.from({ length: items }, (_, n) => ({ n })),
    {
      limit: 40,
      attempts: 2,
      // Killed from outside, again and again: nothing of it is the fault of what ran.
      maxCrashes: 1_000,
      backoff: { type: 'fixed', delayMs: 50 },
    },
  );
  const counts = async () => (await request.status()).counts;
  const reached = async (share) => {
    while ((await counts()).succeeded < items * share) await sleep(20);
  };
  /** From when on no more than `limit` may run. */
  const drained = async (limit) => {
    while ((await counts()).inFlight > limit) await sleep(2);
    return now();
  };

  await reached(0.1);
  await request.update({ limit: 10 });
  const lowFrom = await drained(10);
  await reached(0.15);
  const lowTo = await now();
  await request.update({ limit: 60 });
  await reached(0.4);
  await request.pause();
  const pausedFrom = await drained(0);
  await sleep(1_500);
  const pausedTo = await now();
  await request.resume();

  const first = await request.completion();
  const permanent = Math.floor((items - 8) / 100) + 1;
  strictEqual(first.counts.failed, permanent);
  strictEqual(first.counts.succeeded, items - permanent);
  await redis.set('healed', 1);
  await request.redrive();
  const second = await request.completion();
  ok(second.generation > first.generation);
  strictEqual(second.counts.failed, 0);
  strictEqual(second.counts.succeeded, items);

  const seen = new Map();
  for await (const { index, value } of request.results()) {
    ok(!seen.has(index), `two results of ${index}`);
    seen.set(index, value);
  }
  strictEqual(seen.size, items);
  for (const [index, value] of seen) strictEqual(value, index * 2);
  const all = runs();
  const low = mostAtOnce(all, lowFrom, lowTo);
  const whilePaused = all.filter(([from]) => from > pausedFrom && from < pausedTo).length;
  console.log(
    JSON.stringify({
      ...{ items, fleet, kills, first: first.counts, second: second.counts },
      ...{ runs: all.length, mostAtLimit10: low, begunWhilePaused: whilePaused },
      most: mostAtOnce(all, 0, Number.MAX_SAFE_INTEGER),
    }),
  );
  // A worker that is killed leaves its permits to its lease, so a kill can only make it fewer.
  ok(low <= 10, `${low} at once at a limit of 10`);
  strictEqual(whilePaused, 0);
} finally {
  over = true;
  await Promise.all(
    [...crew].map((worker) => {
      worker.kill('SIGTERM');
      return once(worker, 'exit');
    }),
  );
  await pw.close();
  redis.disconnect();
  await server.close();
  rmSync(folder, { recursive: true, force: true });
}
