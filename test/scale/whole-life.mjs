// One request through all that can happen to it: sub-requests that fail once, and some for good, the
// limit changed twice, a pause, a redrive. In the end every count has to be exact, and after each
// worker's next settle nothing may have started above a new limit, or while the request was paused.
//
//   node test/scale/whole-life.mjs [--items 100000] [--workers 4] [--seed 1]
//   node test/scale/whole-life.mjs --kill-every-ms 1000        the same under kill -9
//
// `--kills N` stops the killing after N; `--work-ms N`: handlers take up to N ms; `--lease-ms N`: of the
// workers. Exit code 0: all of it was so. What is not so is thrown.
import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startRedis } from '@piecework/embedded';
import Table from 'cli-table3';
import { Redis } from 'ioredis';
import { Piecework } from 'piecework';
import { Dice } from '../../tools/chaos/dist/contract/dice.js';
import { judgeStarts } from './starts.mjs';

const { values } = parseArgs({
  options: {
    items: { type: 'string', default: '100000' },
    workers: { type: 'string', default: '4' },
    seed: { type: 'string', default: '1' },
    'work-ms': { type: 'string', default: '8' },
    'lease-ms': { type: 'string', default: '2000' },
    'kill-every-ms': { type: 'string' },
    kills: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
});
const [items, fleet, workMs] = [values.items, values.workers, values['work-ms']].map(Number);
const leaseMs = Number(values['lease-ms']);
const mostKills = Number(values.kills ?? Number.POSITIVE_INFINITY);
const dice = new Dice(Number(values.seed));
const folder = mkdtempSync(join(tmpdir(), 'piecework-life-'));
const program = fileURLToPath(new URL('./whole-life-worker.mjs', import.meta.url));
const now = () => process.hrtime.bigint();
const crew = new Set();
/** Of every worker that ever was: its journal, and when it was gone. */
const journals = [];
let over = false;
let kills = 0;

function hire(url) {
  const journal = join(folder, `${journals.length}.txt`);
  const child = spawn(
    process.execPath,
    [program, JSON.stringify({ url, journal, workMs, leaseMs })],
    {
      stdio: ['ignore', 'inherit', 'inherit'],
    },
  );
  const worker = { child, journal, endNs: undefined, ended: once(child, 'exit') };
  crew.add(worker);
  journals.push(worker);
  child.once('exit', () => {
    worker.endNs = now();
    crew.delete(worker);
    if (!over) hire(url);
  });
}

async function killNowAndThen() {
  while (!over && kills < mostKills) {
    await sleep(Number(values['kill-every-ms']));
    if (over) return;
    dice.pick([...crew]).child.kill('SIGKILL');
    kills += 1;
  }
}

const server = await startRedis({});
const redis = new Redis(server.url);
const pw = new Piecework({ redis: server.url });
const changes = [];
const began = now();

/** Changes the limit of the request, or what comes to the same. */
async function change(limit, call) {
  const askedNs = now();
  const answer = await call();
  changes.push({ limit, askedNs, doneNs: now() });
  return answer;
}

async function live() {
  const open = await change(40, () =>
    pw.open({
      ...{ limit: 40, attempts: 2, backoff: { type: 'fixed', delayMs: 50 } },
      // Killed from outside, again and again: nothing of it is the fault of what ran.
      maxCrashes: 1_000,
    }),
  );
  const request = open.handle;
  const counts = async () => (await request.status()).counts;
  let appended = 0;
  const append = async (share) => {
    for (; appended < items * share; appended += 1) await open.append({ n: appended });
    await open.flush();
  };
  // Little more than that is there by then: however late a check of it comes, some is left for what follows.
  const reached = async (share) => {
    await append(Math.min(1, share + 0.1));
    while ((await counts()).succeeded < items * share) await sleep(10);
  };
  // From now on a late check must not find that nobody runs under the limit that was just set.
  const more = async (share) =>
    await reached(Math.min(0.8, (await counts()).succeeded / items + share));
  await reached(0.1);
  await change(10, () => request.update({ limit: 10 }));
  await more(0.05);
  await change(60, () => request.update({ limit: 60 }));
  await more(0.25);
  await change(0, () => request.pause());
  await append(1);
  await open.seal();
  while ((await counts()).inFlight > 0) await sleep(10);
  // Nobody stands still meanwhile: another request is worked off, by workers that have nothing else.
  const aside = Array.from({ length: 200 }, (_, n) => ({ n, aside: true }));
  const others = await pw.submit(aside, { limit: 60, maxCrashes: 1_000 });
  strictEqual((await others.completion()).counts.succeeded, aside.length);
  await others.drop();
  const paused = await counts();
  await change(60, () => request.resume());
  const first = await request.completion();
  const failed = [];
  for await (const { index, attempts, error } of request.failures()) {
    strictEqual(error.name, 'UnrecoverableError');
    failed.push([index, attempts]);
  }
  await redis.set('healed', 1);
  const { redriven } = await request.redrive();
  const second = await request.completion();
  return { request, paused, first, failed, redriven, second };
}

function checkCounts({ paused, first, failed, redriven, second }) {
  strictEqual(paused.inFlight, 0);
  const none = { ready: 0, inFlight: 0, delayed: 0, cancelled: 0 };
  const permanent = Array.from({ length: items }, (_, n) => n).filter((n) => n % 100 === 7);
  const succeeded = items - permanent.length;
  deepStrictEqual(
    { ...first.counts },
    { total: items, ...none, succeeded, failed: permanent.length },
  );
  // An attempt that ended with its worker is none.
  deepStrictEqual(
    failed.toSorted(([a], [b]) => a - b),
    permanent.map((n) => [n, 1]),
  );
  strictEqual(redriven, permanent.length);
  ok(second.generation > first.generation);
  deepStrictEqual({ ...second.counts }, { total: items, ...none, succeeded: items, failed: 0 });
}

async function checkResults(request) {
  const seen = new Set();
  for await (const { index, value } of request.results()) {
    ok(!seen.has(index), `two results of ${index}`);
    strictEqual(value, index * 2);
    seen.add(index);
  }
  strictEqual(seen.size, items);
}

async function dismiss() {
  over = true;
  for (const { child } of crew) child.kill('SIGTERM');
  await Promise.all([...crew].map(({ ended }) => ended));
}

function show(figures) {
  const table = new Table({ head: ['', ''], style: { head: [], border: [] } });
  for (const [name, value] of Object.entries(figures)) table.push([name, value]);
  console.log(table.toString());
}

try {
  for (let i = 0; i < fleet; i += 1) hire(server.url);
  const killing = values['kill-every-ms'] ? killNowAndThen() : undefined;
  const life = await live();
  const seconds = Number(now() - began) / 1e9;
  await dismiss();
  await killing;
  checkCounts(life);
  await checkResults(life.request);
  const started = judgeStarts(
    journals.map(({ journal, endNs }) => ({ text: readText(journal), endNs })),
    changes,
  );
  const { runs, zombies, killed, figures, violations } = started;
  if (values.json) console.log(JSON.stringify({ items, kills, seconds, ...started }));
  else
    show({
      'sub-requests': items,
      'seconds, start of the workers included': seconds.toFixed(1),
      'workers killed': kills,
      'runs of a handler': runs,
      'of them cut off by a kill': killed,
      'of them told to abort (zombies)': zombies,
      'succeeded, failed at first': `${life.first.counts.succeeded}, ${life.first.counts.failed}`,
      'succeeded, failed after the redrive': `${life.second.counts.succeeded}, ${life.second.counts.failed}`,
      ...Object.fromEntries(
        figures.map(({ limit, starts, most, above }, i) => [
          `limit ${limit}${limit === 0 ? ' (paused)' : ''}, from change ${i}`,
          `${starts} starts, at most ${most} at once, ${above} above`,
        ]),
      ),
    });
  deepStrictEqual(violations.slice(0, 10), []);
} finally {
  await dismiss();
  await pw.close();
  redis.disconnect();
  await server.close();
  rmSync(folder, { recursive: true, force: true });
}

/** Of one that was killed before it opened it, nothing. */
function readText(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
