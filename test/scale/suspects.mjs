// How long the sub-requests that kill their process hold up the innocent ones beside them.
//
//   node test/scale/suspects.mjs [--items 1000] [--slots 100] [--ms 500] [--processes 1] [--killers 1]
//     [--max-crashes 3] [--lease-ms 2000] [--kill-after 0] [--alone] [--json]
//
// A process that dies is replaced at once. It is one of `WorkerFleet`, as `piecework worker --processes`
// has it; with `--alone` nobody is its parent but this program, which says nothing of its end.
// Exit code 1 when an innocent one fails, or a guilty one does not.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { WorkerFleet } from '@piecework/cli';
import { startRedis } from '@piecework/embedded';
import { Piecework } from 'piecework';

const { values } = parseArgs({
  options: {
    items: { type: 'string', default: '1000' },
    slots: { type: 'string', default: '100' },
    ms: { type: 'string', default: '500' },
    processes: { type: 'string', default: '1' },
    killers: { type: 'string', default: '1' },
    'max-crashes': { type: 'string', default: '3' },
    'lease-ms': { type: 'string', default: '2000' },
    'kill-after': { type: 'string', default: '0' },
    alone: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
});
const [items, slots, ms, processes, killers] = [
  values.items,
  values.slots,
  values.ms,
  values.processes,
  values.killers,
].map(Number);
const PROGRAM = fileURLToPath(new URL('../../packages/cli/bin/piecework.js', import.meta.url));

const folder = await mkdtemp(join(tmpdir(), 'piecework-suspects-'));
const handler = join(folder, 'handler.mjs');
await writeFile(
  handler,
  `import { setTimeout as sleep } from 'node:timers/promises';
export default async ({ kill }) => {
  if (kill === undefined) return void (await sleep(${ms}));
  if (kill > 0) await sleep(kill);
  process.kill(process.pid, 'SIGKILL');
  await new Promise(() => {});
};
`,
);
const server = await startRedis();
const redis = server.url;
const queue = 'suspects';
const flags = ['--concurrency', values.slots, '--lease-ms', values['lease-ms']];
flags.push('--log-level', 'silent');
const pw = new Piecework({ redis, queue });
let deaths = 0;
let stopping = false;
const ends = [];

/** A process that is replaced when it dies. */
async function keepOne() {
  if (values.alone) {
    const args = [PROGRAM, 'worker', '--queue', queue, '--handler', handler, ...flags];
    const child = spawn(process.execPath, args, {
      env: { ...process.env, REDIS_URL: redis },
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    ends.push(async () => {
      child.kill('SIGTERM');
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    });
    void once(child, 'exit').then(() => replace());
    return;
  }
  const fleet = await WorkerFleet.start({ redis, queue, handler, flags });
  ends.push(() => fleet.close());
  fleet.lost.catch(() => replace());
}

function replace() {
  if (stopping) return;
  deaths += 1;
  void keepOne();
}

try {
  await Promise.all(Array.from({ length: processes }, keepOne));
  // Spread over the items: the first stands in the middle when there is one.
  const at = new Set(
    Array.from({ length: killers }, (_, i) => Math.floor((items * (2 * i + 1)) / (2 * killers))),
  );
  const kill = Number(values['kill-after']);
  const began = performance.now();
  const handle = await pw.submit(
    Array.from({ length: items }, (_, i) => (at.has(i) ? { kill } : {})),
    { maxCrashes: Number(values['max-crashes']), limit: slots * processes },
  );
  const ended = handle.completion({ timeoutMs: 600_000 });
  let slowest = Number.POSITIVE_INFINITY;
  let over = false;
  void ended.finally(() => {
    over = true;
  });
  // The slowest five seconds, once it runs.
  const seen = [];
  while (!over) {
    const state = await handle.status();
    seen.push({
      at: performance.now(),
      settled: (state?.counts.succeeded ?? 0) + (state?.counts.failed ?? 0),
    });
    const [first] = seen;
    const last = seen.at(-1);
    if (last.at - first.at >= 5_000) {
      slowest = Math.min(slowest, (1_000 * (last.settled - first.settled)) / (last.at - first.at));
      seen.shift();
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  await ended;
  const seconds = (performance.now() - began) / 1_000;
  const { succeeded, failed } = (await handle.status()).counts;
  const guilty = [];
  for await (const failure of handle.failures()) guilty.push(failure);
  const blamed = guilty.filter(({ index }) => !at.has(index)).map(({ index }) => index);
  const figures = {
    ...{ items, slots, ms, processes, killers, maxCrashes: Number(values['max-crashes']) },
    ...{ seconds: Number(seconds.toFixed(1)), deaths, succeeded, failed, blamed },
    slowest: Number.isFinite(slowest) ? Number(slowest.toFixed(1)) : undefined,
    crashes: guilty.map(({ crashes }) => crashes),
    error: guilty[0]?.error,
  };
  if (values.json) console.log(JSON.stringify(figures));
  else {
    console.log(
      `${items} sub-requests of ${ms} ms, ${killers} of which kill their process, on ${processes} × ${slots} slots,\n` +
        `maxCrashes ${figures.maxCrashes}: ${figures.seconds} s, ${deaths} processes died, ` +
        `at least ${figures.slowest ?? '-'}/s over five seconds; failed: ${failed}, of them innocent: ${blamed.length}`,
    );
    if (figures.error) console.log(JSON.stringify(figures.error));
  }
  process.exitCode = blamed.length > 0 || failed !== killers ? 1 : 0;
} finally {
  stopping = true;
  await Promise.all(ends.map((end) => end()));
  await pw.close();
  await server.close();
  await rm(folder, { recursive: true });
}
