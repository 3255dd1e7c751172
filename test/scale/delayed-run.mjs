// The run behind delayed-tasks.mjs and its test: tasks of all priorities, delayed and not, through one
// slot, and what became of their order.
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startRedis } from '@piecework/embedded';
import { Redis } from 'ioredis';
import pMap from 'p-map';
import { DelayedTasks } from 'piecework';
import { judgeOrder } from './delayed-order.mjs';

const SETTINGS = [
  '--appendonly',
  'yes',
  '--appendfsync',
  'no',
  '--auto-aof-rewrite-percentage',
  '0',
];
const MOVERS = 2;
const PRIORITIES = Array.from({ length: 100 }, (_, priority) => priority);
const MOVER = fileURLToPath(new URL('./delayed-mover.mjs', import.meta.url));

/**
 * @param before how many tasks are all in, and those due all moved, before the worker starts
 * @param live how many are put in while it runs
 * @param delayMs the longest delay
 * @param say told how far it is
 */
export async function runDelayedTasks({ before, live, delayMs, say = () => {} }) {
  const folder = await mkdtemp(join(tmpdir(), 'piecework-order-'));
  const server = await startRedis({ dir: folder, args: SETTINGS });
  const queue = 'order';
  const redis = server.url;
  const client = new Redis(redis);
  const tasks = new DelayedTasks({ redis });
  const movers = Array.from({ length: MOVERS }, () => startMover({ redis, queue }));
  try {
    const put = (from, to) =>
      Promise.all(
        movers.map((mover, share) => mover.put({ from, to, of: MOVERS, delayMs, share })),
      );
    await put(0, before);
    say(`${before} are in`);
    const inLists = async (suffix) => {
      const lengths = await Promise.all(
        PRIORITIES.map((p) => client.llen(`{${queue}}:${p}${suffix}`)),
      );
      return lengths.reduce((sum, n) => sum + n, 0);
    };
    while ((await inLists('')) + (await inLists(':due')) < before) await sleep(50);
    const moved = await inLists(':due');
    say(`${moved} of them were delayed, and are moved`);
    const recorded = [];
    const note = async ([n], { requestId }) => void recorded.push({ n, id: requestId });
    const worker = tasks.worker({ queues: [queue], handlers: { note }, concurrency: 1 });
    await worker.start();
    await put(before, before + live);
    say(`${live} more are in, while ${recorded.length} ran`);
    const ranMeanwhile = recorded.length;
    while (recorded.length < before + live || (await client.hlen(`{${queue}}:open`)) > 0)
      await sleep(50);
    say('all have run');
    await worker.close();
    await Promise.all(movers.map((mover) => mover.end()));
    const order = (await judgeOrder(join(folder, 'appendonlydir'), [queue])).get(queue);
    return { recorded, moved, ranMeanwhile, ...order };
  } finally {
    for (const mover of movers) mover.kill();
    await tasks.close();
    client.disconnect();
    await server.close();
    await rm(folder, { recursive: true, force: true });
  }
}

/** So many that each is put in again long before the others have run. */
const BACKLOG = 60;

/**
 * Tasks of two queues, put in while one worker serves both. Answers how many ran, and of each queue how
 * they were taken. `busy`: there is something in the later one throughout, so that no pop waits.
 */
export async function runTwoQueues({ count, concurrency, busy = false }) {
  const folder = await mkdtemp(join(tmpdir(), 'piecework-order-'));
  const server = await startRedis({ dir: folder, args: SETTINGS });
  const tasks = new DelayedTasks({ redis: server.url });
  const queues = ['first', 'second'];
  const ran = new Set();
  const least = () => tasks.executeLater(queues[1], 'again', [], { priority: 99 });
  const handlers = {
    note: async (_, { requestId }) => void ran.add(requestId),
    // Nobody waits for it, so that its slot is free.
    again: async () => void (ran.size < count && least().catch(() => {})),
  };
  try {
    if (busy) await Promise.all(Array.from({ length: BACKLOG }, least));
    await tasks.worker({ queues, handlers, concurrency }).start();
    const put = (n) => {
      const options = { priority: n % 7, ...(n % 3 === 0 ? { delayMs: 1 + (n % 50) } : {}) };
      // The later one has more to do, in bursts, so that the earlier one is empty now and then.
      const queue = queues[n % 16 < 5 ? 0 : 1];
      return tasks.executeLater(queue, 'note', [n], options);
    };
    const all = Array.from({ length: count }, (_, n) => n);
    await pMap(all, put, { concurrency: 16 });
    while (ran.size < count) await sleep(20);
    await tasks.close();
    return { ran: ran.size, orders: await judgeOrder(join(folder, 'appendonlydir'), queues) };
  } finally {
    await tasks.close();
    await server.close();
    await rm(folder, { recursive: true, force: true });
  }
}

function startMover(argument) {
  const child = spawn(process.execPath, [MOVER, JSON.stringify(argument)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = new Promise((resolve) => child.on('exit', resolve));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    put: async (what) => {
      child.stdin.write(`${JSON.stringify(what)}\n`);
      const { done } = await lines.next();
      if (done) throw new Error('a mover ended');
    },
    end: () => {
      child.stdin.end();
      return ended;
    },
    kill: () => child.kill('SIGKILL'),
  };
}

/**
 * What is wrong, in words: a breach of the order at a pop; a task that did not run once; one that ran in
 * another order than its token was popped; and, of those that were all in before, any that ran before one
 * of a lower number, of its priority's lane, or due earlier.
 */
export function wrongIn({ recorded, pops, breaches, moved }, { before, live }) {
  const wrong = [...breaches];
  if (moved === 0 || moved >= before) wrong.push(`${moved} of ${before} were delayed`);
  const ran = new Set(recorded.map(({ id }) => id));
  if (recorded.length !== before + live || ran.size !== before + live)
    wrong.push(`${recorded.length} runs of ${ran.size} tasks, and not ${before + live}`);
  const popped = pops.map(({ id }) => id);
  const differs = recorded.findIndex(({ id }, i) => id !== popped[i]);
  if (differs >= 0 || popped.length !== recorded.length)
    wrong.push(`${popped.length} pops, ${recorded.length} runs; unlike from number ${differs} on`);
  const popOf = new Map(pops.map((pop) => [pop.id, pop]));
  let last;
  for (const { n, id } of recorded) {
    const pop = popOf.get(id);
    if (n >= before || !pop) continue;
    const { priority, due } = pop;
    const place = [priority, due || Number.MAX_SAFE_INTEGER];
    if (last && (place[0] - last[0] || place[1] - last[1]) < 0)
      wrong.push(`${n}, ${place}, after ${last}`);
    last = place;
  }
  return wrong;
}
