// Plays a scaler, as KEDA's metrics-api scaler is one, on a real fleet: it asks the exporter how many slots the work needs,
// starts workers, and sends them SIGTERM. Prints the series, and fails unless the fleet goes from none to several and
// back, twice, and every sub-request succeeds and runs once.
//
//   node test/scale/scaler.mjs          takes about a minute and a half
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startRedis } from '@piecework/embedded';
import { Piecework } from 'piecework';

const PROGRAM = fileURLToPath(new URL('../../packages/cli/bin/piecework.js', import.meta.url));
/** Slots of a replica: the targetValue of the scaler. */
const SLOTS = 4;
const MOST_REPLICAS = 5;
const TARGET_SECONDS = 10;
/** A replica goes only when nothing in this time wanted it, in ms: stabilizationWindowSeconds. */
const STABLE_MS = 6_000;
/** Bursts of work: how many sub-requests, and when they come. `rested`: the fleet worked, and is gone again. */
const BURSTS = [
  { count: 400, isDue: ({ at }) => at > 3_000 },
  { count: 200, isDue: ({ running }) => running > 0 },
  { count: 100, isDue: ({ rested }) => rested },
];
const HANDLER_MS = 300;
/** A slow machine takes longer to start workers; after this it has failed. */
const LONGEST_MS = 400_000;

const folder = mkdtempSync(join(tmpdir(), 'piecework-scaler-'));
const ran = join(folder, 'ran');
writeFileSync(ran, '');
const handler = join(folder, 'handler.mjs');
writeFileSync(
  handler,
  `import { appendFileSync } from 'node:fs';
   import { setTimeout as sleep } from 'node:timers/promises';
   export default async ({ ms }, { requestId, index }) => {
     appendFileSync(${JSON.stringify(ran)}, requestId + ':' + index + '\\n');
     await sleep(ms);
   };`,
);
const redis = await startRedis();
const pw = new Piecework({ redis: redis.url });
const children = new Set();

function start(...args) {
  const child = spawn(process.execPath, [PROGRAM, ...args], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, REDIS_URL: redis.url },
  });
  children.add(child);
  const ended = once(child, 'exit').then(([code]) => {
    children.delete(child);
    return code;
  });
  return { child, ended };
}

const exporter = start(
  'exporter',
  '--port',
  '0',
  '--target-seconds',
  String(TARGET_SECONDS),
  '--log-format',
  'json',
);
let said = '';
const listens = new Promise((resolve) => {
  exporter.child.stderr.setEncoding('utf8').on('data', (text) => {
    said += text;
    const [, port] = /"port":(\d+)/.exec(said) ?? [];
    if (port) resolve(Number(port));
  });
});
const scale = `http://127.0.0.1:${await listens}/scale`;

const replicas = [];
const exitCodes = [];
const wanted = [];
const series = [];
const ids = [];
const began = performance.now();
const left = [...BURSTS];
try {
  let hasWorked = false;
  for (let at = 0; at < LONGEST_MS; at = performance.now() - began) {
    const { running: now = 0 } = series.at(-1) ?? {};
    hasWorked ||= now > 0;
    const rested = hasWorked && replicas.length === 0;
    if (rested && left.length === 0) break;
    if (left[0]?.isDue({ at, running: now, rested })) {
      await submit(left.shift());
      hasWorked = false;
    }
    const { neededSlots, ready, running, handlerSeconds } = await (await fetch(scale)).json();
    wanted.push({ at, replicas: Math.min(MOST_REPLICAS, Math.ceil(neededSlots / SLOTS)) });
    // Up at once, down to the most that was wanted lately.
    const lately = wanted.filter((one) => at - one.at < STABLE_MS);
    follow(Math.max(...lately.map((one) => one.replicas)));
    series.push({ at, neededSlots, ready, running, handlerSeconds, replicas: replicas.length });
    await sleep(1_000);
  }
  await judge();
} finally {
  for (const child of children) child.kill('SIGTERM');
  await Promise.all([...children].map((child) => once(child, 'exit')));
  await pw.close();
  await redis.close();
  rmSync(folder, { recursive: true, force: true });
}

async function submit({ count }) {
  const items = Array.from({ length: count }, () => ({ ms: HANDLER_MS }));
  ids.push({ id: (await pw.submit(items)).id, count });
}

function follow(count) {
  while (replicas.length < count) {
    const args = ['worker', '--handler', handler, '--concurrency', String(SLOTS)];
    replicas.push(start(...args, '--drain-ms', '10000', '--log-level', 'error'));
  }
  while (replicas.length > count) {
    const { child, ended } = replicas.pop();
    child.kill('SIGTERM');
    exitCodes.push(ended);
  }
}

async function judge() {
  const most = Math.max(...series.map((one) => one.replicas));
  console.log('   s  needed  ready  running  handler  replicas');
  for (const [i, one] of series.entries()) {
    if (i % 2 > 0 && one.replicas === series[i - 1].replicas) continue;
    const { at, neededSlots, ready, running, handlerSeconds } = one;
    const cells = [(at / 1_000).toFixed(0), neededSlots, ready, running, handlerSeconds.toFixed(2)];
    const widths = [4, 6, 5, 7, 7];
    const line = cells.map((cell, n) => String(cell).padStart(widths[n])).join('  ');
    console.log(`${line}  ${'█'.repeat(one.replicas)}${'·'.repeat(most - one.replicas)}`);
  }
  const problems = [];
  for (const { id, count } of ids) {
    const { status, counts } = await pw.request(id).status();
    if (status !== 'complete' || counts.succeeded !== count)
      problems.push(`${id} is ${status}: ${JSON.stringify(counts)}`);
  }
  const runs = readFileSync(ran, 'utf8').trim().split('\n');
  const twice = runs.length - new Set(runs).size;
  if (twice > 0) problems.push(`${twice} sub-requests ran twice`);
  const shape = series
    .map((one) => (one.replicas === 0 ? '0' : '+'))
    .join('')
    .replace(/(.)\1+/g, '$1');
  if (shape !== '0+0+0') problems.push(`the fleet went ${shape}, and not 0+0+0`);
  if (most < 3) problems.push(`there were never more than ${most} replicas`);
  const codes = await Promise.all(exitCodes);
  if (codes.some((code) => code !== 0)) problems.push(`exit codes of drained workers: ${codes}`);
  console.log(
    `${runs.length} sub-requests ran, ${twice} twice; ${codes.length} workers were drained under load or idle; at most ${most} at once`,
  );
  for (const problem of problems) console.error(`FAILED: ${problem}`);
  process.exitCode = problems.length === 0 ? 0 : 1;
}
