// What one client sends that put one delayed task, due in an hour, into each of many queues, and then does nothing.
//
//   node test/scale/idle-queues.mjs [--queues 2000] [--wait-ms 60000] [--over-ms 60000] [--json]
//
// After --wait-ms, calls, bytes and the CPU time of the server (INFO) and of this process over --over-ms. Calls are
// what the client sends, not what the scripts call.
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { startRedis } from '@piecework/embedded';
import { Redis } from 'ioredis';
import pMap from 'p-map';
import { DelayedTasks } from 'piecework';

const { values } = parseArgs({
  options: {
    queues: { type: 'string', default: '2000' },
    'wait-ms': { type: 'string', default: '60000' },
    'over-ms': { type: 'string', default: '60000' },
    json: { type: 'boolean', default: false },
  },
});
const [queues, waitMs, overMs] = [values.queues, values['wait-ms'], values['over-ms']].map(Number);
const server = await startRedis({});
const client = new Redis(server.url);
const tasks = new DelayedTasks({ redis: server.url });

/** Calls so far, but for those of this program itself; CPU time of the server and of this process. */
async function measure() {
  const stats = await client.info('commandstats');
  const sent = stats.matchAll(/^cmdstat_(evalsha|eval|lmpop|blmpop|ping):calls=(\d+)/gm);
  const cpu = await client.info('cpu');
  const of = (kind) => Number(new RegExp(`used_cpu_${kind}:([\\d.]+)`).exec(cpu)?.[1]);
  const { user, system } = process.cpuUsage();
  return {
    calls: [...sent].reduce((sum, [, , count]) => sum + Number(count), 0),
    serverMs: 1_000 * (of('user') + of('sys')),
    clientMs: (user + system) / 1_000,
  };
}

await pMap(
  Array.from({ length: queues }, (_, i) => `idle${i}`),
  (queue) => tasks.executeLater(queue, 'note', [1], { delayMs: 3_600_000 }),
  { concurrency: 64 },
);
await sleep(waitMs);
const before = await measure();
await sleep(overMs);
const after = await measure();
const perSecond = (field) => Math.round((10_000 * (after[field] - before[field])) / overMs) / 10;
const figures = {
  queues,
  callsPerSecond: perSecond('calls'),
  serverCpuMsPerSecond: perSecond('serverMs'),
  clientCpuMsPerSecond: perSecond('clientMs'),
};
console.log(values.json ? JSON.stringify(figures) : figures);
await tasks.close();
client.disconnect();
await server.close();
