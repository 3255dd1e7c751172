// What a delayed task costs while it waits and after its end, and how late tasks are.
//
//   node test/scale/delayed-cost.mjs [--tasks 10000] [--timed 1000] [--over-ms 20000] [--json]
//
// Memory and CPU are those of Redis, from INFO. The timed tasks are due evenly over --over-ms, in one queue
// with one worker; how late each began is printed beside a bare setTimeout of the same process for the same
// time. Then nothing happens for a while: what is sent then is what an idle process sends.
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { startRedis } from '@piecework/embedded';
import { Redis } from 'ioredis';
import pMap from 'p-map';
import { DelayedTasks } from 'piecework';

const { values } = parseArgs({
  options: {
    tasks: { type: 'string', default: '10000' },
    timed: { type: 'string', default: '1000' },
    'over-ms': { type: 'string', default: '20000' },
    json: { type: 'boolean', default: false },
  },
});
const [waiting, timed, overMs] = [values.tasks, values.timed, values['over-ms']].map(Number);
const HOUR_MS = 3_600_000;
const IDLE_MS = 10_000;
const AT_ONCE = 64;
const numbers = (n) => Array.from({ length: n }, (_, i) => i);
const server = await startRedis({});
const client = new Redis(server.url);
const tasks = new DelayedTasks({ redis: server.url });

async function measure() {
  const info = await client.info();
  const field = (name) => Number(new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)[1]);
  const cpuUs = 1e6 * (field('used_cpu_user') + field('used_cpu_sys'));
  return {
    bytes: field('used_memory'),
    cpuUs,
    calls: calls(await client.info('commandstats')),
    keys: await client.dbsize(),
  };
}

/** What clients sent: not the commands inside of scripts, and not this program's own. */
function calls(info) {
  const counts = [
    ...info.matchAll(/^cmdstat_(evalsha|eval|lmpop|blmpop|ping|client\|unblock):calls=(\d+)/gm),
  ];
  return counts.reduce((sum, [, , count]) => sum + Number(count), 0);
}

/** What this cost, for each of `n`. */
async function costOf(n, work) {
  const before = await measure();
  await work();
  const after = await measure();
  return {
    bytes: Math.round((after.bytes - before.bytes) / n),
    cpuUs: Math.round((after.cpuUs - before.cpuUs) / n),
    keys: (after.keys - before.keys) / n,
  };
}

const quantiles = (numbers) => {
  const sorted = [...numbers].sort((a, b) => a - b);
  const at = (share) => Math.round(10 * sorted[Math.floor(share * (sorted.length - 1))]) / 10;
  return { median: at(0.5), p99: at(0.99), most: at(1) };
};

// The scripts and the first objects are not to be counted.
const first = await tasks.executeLater('cost', 'note', ['first'], { delayMs: HOUR_MS });
await tasks.cancel('cost', first);
const ids = [];
const put = await costOf(waiting, () =>
  pMap(
    numbers(waiting),
    async (n) => {
      ids.push(await tasks.executeLater('cost', 'note', [n], { delayMs: HOUR_MS + n }));
    },
    { concurrency: AT_ONCE },
  ),
);
await pMap(ids, (id) => tasks.cancel('cost', id), { concurrency: AT_ONCE });
const undelayed = [];
const afterEnd = await costOf(waiting, async () => {
  const worker = tasks.worker({
    queues: ['ended'],
    handlers: { note: async ([n]) => void undelayed.push(n) },
    concurrency: 10,
  });
  await worker.start();
  await pMap(numbers(waiting), (n) => tasks.executeLater('ended', 'note', [n]), {
    concurrency: AT_ONCE,
  });
  while (undelayed.length < waiting || (await client.hlen('{ended}:open')) > 0) await sleep(20);
  await worker.close();
});

const late = [];
const control = [];
const worker = tasks.worker({
  queues: ['timed'],
  handlers: { note: async ([dueAt]) => void late.push(Date.now() - dueAt) },
});
await worker.start();
const begin = Date.now() + 3_000;
await pMap(
  numbers(timed),
  async (n) => {
    const runAt = begin + Math.round((n * overMs) / timed);
    await tasks.executeLater('timed', 'note', [runAt], { runAt });
    setTimeout(() => control.push(Date.now() - runAt), runAt - Date.now());
  },
  { concurrency: AT_ONCE },
);
const putInMs = Date.now() - begin + 3_000;
while (late.length < timed) await sleep(20);
await sleep(2_000);
const idle = await measure();
await sleep(IDLE_MS);
const idleEnd = await measure();
const figures = {
  waiting: put,
  remembered: afterEnd,
  lateMs: quantiles(late),
  setTimeoutLateMs: quantiles(control),
  early: late.filter((ms) => ms < 0).length,
  putInMs,
  idleCallsPerSecond: (idleEnd.calls - idle.calls) / (IDLE_MS / 1_000),
};
console.log(values.json ? JSON.stringify(figures) : figures);
await tasks.close();
client.disconnect();
await server.close();
