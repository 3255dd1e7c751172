// Calls and CPU time of a server whose queue has many requests that no worker can serve, beside one idle worker of
// another task.
//
//   node test/scale/parked-requests.mjs [--requests 10000] [--paused] [--over-ms 60000] [--json]
//
// Measures over --over-ms from the moment at which every request is asleep, then starts that worker. With --paused the
// requests are paused instead, and no worker comes. Calls are scripts and pops that clients send.
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { startRedis } from '@piecework/embedded';
import { Redis } from 'ioredis';
import pMap from 'p-map';
import { defineTask, Piecework, Worker } from 'piecework';

const { values } = parseArgs({
  options: {
    requests: { type: 'string', default: '10000' },
    paused: { type: 'boolean', default: false },
    'over-ms': { type: 'string', default: '60000' },
    json: { type: 'boolean', default: false },
  },
});
const [requests, overMs] = [values.requests, values['over-ms']].map(Number);
const server = await startRedis({});
const client = new Redis(server.url);
const pw = new Piecework({ redis: server.url });
const served = defineTask('served');
const task = values.paused ? served : defineTask('unserved');

/** Calls so far, and CPU time of the server in ms. */
async function measure() {
  const stats = await client.info('commandstats');
  const sent = [...stats.matchAll(/^cmdstat_(evalsha|eval|lmpop|blmpop):calls=(\d+)/gm)];
  const cpu = await client.info('cpu');
  const of = (kind) => Number(new RegExp(`used_cpu_${kind}:([\\d.]+)`).exec(cpu)?.[1]);
  return {
    calls: sent.reduce((sum, [, , count]) => sum + Number(count), 0),
    serverMs: 1_000 * (of('user') + of('sys')),
  };
}

await pMap(
  Array.from({ length: requests }, (_, i) => `waits${i}`),
  async (id) => {
    const request = await pw.submit([1], { id, task });
    if (values.paused) await request.pause();
  },
  { concurrency: 64 },
);
const worker = new Worker({ redis: server.url, handlers: [served.handler(() => {})] });
await worker.start();
// All are asleep when no request has a token out any more and none is due within a grace.
for (;;) {
  const [waiting, time] = await Promise.all([client.zcard('{req}:wait'), client.time()]);
  const soon = await client.zcount('{req}:agenda', '-inf', time[0] * 1_000 + 25_000);
  if (waiting === 0 && soon <= 60) break;
  await sleep(500);
}
const before = await measure();
await sleep(overMs);
const after = await measure();
const perSecond = (field) => Math.round((10_000 * (after[field] - before[field])) / overMs) / 10;
const figures = {
  requests,
  state: values.paused ? 'paused' : 'parked',
  callsPerSecond: perSecond('calls'),
  serverCpuMsPerSecond: perSecond('serverMs'),
};
if (!values.paused) {
  const ended = async () => Number(await client.hget('{req}:counters', 'succeeded'));
  const started = performance.now();
  const comes = new Worker({ redis: server.url, handlers: [task.handler(() => {})] });
  await comes.start();
  while ((await ended()) < requests) await sleep(20);
  figures.endedMs = Math.round(performance.now() - started);
  figures.callsToEnd = (await measure()).calls - after.calls;
  await comes.close();
}
console.log(values.json ? JSON.stringify(figures) : figures);
await worker.close();
await pw.close();
client.disconnect();
await server.close();
