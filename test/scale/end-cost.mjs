// What the end of a request costs Redis: a cancel with few and with many queued, and a drop.
//
//   node test/scale/end-cost.mjs [--few 10000] [--many 1000000] [--rounds 3] [--commands-only] [--json]
//
// Of each cancel: commands (those inside the script counted) and CPU of Redis' main thread, with 50 that
// run and with none; the least of the rounds. Exit code 1 when many cost more than twice as much as few:
// commands, and CPU unless --commands-only.
//
// Of a drop: Redis frees a key on its main thread if that is little work, else in the background
// (UNLINK; INFO's `lazyfreed_objects` counts those keys). Here is how many entries a stream may have
// to be freed at once, and that of what is greater nothing is.
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { startRedis } from '@piecework/embedded';
import { Connection, QueueCommands } from '@piecework/protocol';
import { RequestCommands } from '@piecework/protocol/testing';
import Table from 'cli-table3';

const { values } = parseArgs({
  options: {
    few: { type: 'string', default: '10000' },
    many: { type: 'string', default: '1000000' },
    rounds: { type: 'string', default: '3' },
    'commands-only': { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
});
const [few, many, rounds] = [values.few, values.many, values.rounds].map(Number);
const CHUNK = 500;
const RUNNING = 50;
const WORKER = 'worker';
const server = await startRedis({});
const connection = Connection.open(server.url);
const { client } = connection;
const queue = new QueueCommands(connection, 'cost');
let requests = 0;

/** A sealed request of `n` sub-requests, by the calls that a producer makes. */
async function fill(n) {
  requests += 1;
  const id = `r${requests}`;
  const request = new RequestCommands(connection, id);
  const generation = await queue.intent(id);
  const options = {
    ...{ queue: 'cost', priority: 50, limit: RUNNING, task: '', attempts: 1, maxCrashes: 3 },
    ...{ window: 0, results: 'keep', retentionMs: 600_000, toleratedFailures: 0, digest: 'd' },
    ...{ onProducerLost: 'seal', metadata: '' },
  };
  await request.create({
    ...{ generation, owner: 'owner', leaseMs: 600_000 },
    options: JSON.stringify(Object.entries(options).flat().map(String)),
  });
  for (let i = 0; i < n; i += CHUNK)
    await request.append(generation, 'p', i, Array(Math.min(CHUNK, n - i)).fill('x'.repeat(20)));
  await request.seal(generation, 'p', n);
  return { id, request, generation, op: 0 };
}

async function hold(scene, n) {
  scene.op += 1;
  await scene.request.enter({
    generation: scene.generation,
    worker: WORKER,
    op: scene.op,
    want: n,
    leaseMs: 600_000,
    tasks: '*',
    epochs: ['1'],
  });
  return scene.request.read(WORKER, n);
}

async function failSome(scene, n) {
  for (let i = 0; i < n; i += CHUNK) {
    const entries = await hold(scene, CHUNK);
    const outcomes = entries.map(({ entry }) => ({
      ...{ entry, kind: 'f', value: '{"name":"Error","message":"no"}', delayMs: 0 },
    }));
    scene.op += 1;
    const numbers = { op: scene.op, leaseMs: 600_000, keep: RUNNING, running: 0, read: 0 };
    await scene.request.settle(scene.generation, WORKER, numbers, outcomes);
  }
}

async function info(section) {
  const lines = (await client.info(section)).split('\r\n').map((line) => line.split(':'));
  return new Map(lines.map(([name, value]) => [name, value]));
}

async function mainThreadMs() {
  const cpu = await info('cpu');
  const of = (kind) => Number(cpu.get(`used_cpu_${kind}_main_thread`));
  return (of('user') + of('sys')) * 1_000;
}

/** Commands and main-thread CPU of what `work` does. */
async function metered(work) {
  await client.config('RESETSTAT');
  const before = await mainThreadMs();
  await work();
  const cpuMs = (await mainThreadMs()) - before;
  const stats = [...(await info('commandstats'))].filter(([name]) => name.startsWith('cmdstat_'));
  const commands = stats
    .filter(([name]) => !/info|config/.test(name))
    .reduce((sum, [, value]) => sum + Number(/calls=(\d+)/.exec(value)[1]), 0);
  return { commands, cpuMs };
}

async function bury({ id, request, generation }) {
  await request.drop();
  await queue.finish(id, generation, 'dropped');
}

async function cancelOf(n, running) {
  const best = { commands: Number.POSITIVE_INFINITY, cpuMs: Number.POSITIVE_INFINITY };
  for (let i = 0; i < rounds; i += 1) {
    const scene = await fill(n);
    if (running > 0) await hold(scene, running);
    const { commands, cpuMs } = await metered(() => scene.request.cancel(scene.generation));
    best.commands = Math.min(best.commands, commands);
    best.cpuMs = Math.min(best.cpuMs, cpuMs);
    await bury(scene);
  }
  return { queued: n, running, ...best };
}

/** Keys that were freed in the background so far, once none is left to be. */
async function freedBehind() {
  for (;;) {
    const memory = await info('memory');
    if (memory.get('lazyfree_pending_objects') === '0')
      return Number(memory.get('lazyfreed_objects'));
    await sleep(1);
  }
}

async function dropOf(n, failed) {
  const scene = await fill(n);
  if (failed > 0) await failSome(scene, failed);
  const before = await freedBehind();
  const cpuBefore = await mainThreadMs();
  await scene.request.drop();
  const cpuMs = (await mainThreadMs()) - cpuBefore;
  const keysBehind = (await freedBehind()) - before;
  await queue.finish(scene.id, scene.generation, 'dropped');
  return { queued: n - failed, failed, keysBehind, cpuMs };
}

try {
  const cancels = [];
  for (const running of [RUNNING, 0])
    for (const n of [few, many]) cancels.push(await cancelOf(n, running));
  const drops = [];
  for (const n of [1_000, 2_000, 3_000, 3_500, 4_000, 5_000, 10_000])
    drops.push(await dropOf(n, 0));
  // Of the last one more than its stream is freed, so it says nothing of the stream.
  const mostAtOnce = Math.max(...drops.map((d) => (d.keysBehind > 0 ? 0 : d.queued)));
  drops.push(await dropOf(Math.round(many * 1.1), Math.round(many / 10)));
  const ratio = (what) => [0, 2].map((i) => cancels[i + 1][what] / cancels[i][what]);
  const ratios = { commands: Math.max(...ratio('commands')), cpu: Math.max(...ratio('cpuMs')) };
  if (values.json) console.log(JSON.stringify({ cancels, drops, ratios, mostAtOnce }));
  else {
    const style = { head: [], border: [] };
    const head = ['cancel: queued', 'running', 'commands', 'CPU (ms)'];
    const table = new Table({ head, style });
    for (const { queued, running, commands, cpuMs } of cancels)
      table.push([queued, running, commands, cpuMs.toFixed(2)]);
    console.log(table.toString());
    const dropped = new Table({
      ...{ head: ['drop: queued', 'failed', 'keys freed in the background', 'CPU (ms)'], style },
    });
    for (const { queued, failed, keysBehind, cpuMs } of drops)
      dropped.push([queued, failed, keysBehind, cpuMs.toFixed(2)]);
    console.log(dropped.toString());
    console.log(
      `many against few: commands ${ratios.commands.toFixed(2)}, CPU ${ratios.cpu.toFixed(2)}`,
    );
    console.log(`most entries of a stream that were freed by the call itself: ${mostAtOnce}`);
  }
  const tooMuch = ratios.commands > 2 || (!values['commands-only'] && ratios.cpu > 2);
  if (tooMuch) process.exitCode = 1;
} finally {
  await connection.close();
  await server.close();
}
