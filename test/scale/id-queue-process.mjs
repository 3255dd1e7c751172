// A producer or a consumer of test/scale/id-queue.mjs: one object, shared by several callers. Tells its parent
// what its meters read, and a consumer whom it had in hand since when.
import { setTimeout as sleep } from 'node:timers/promises';
import { IdQueue } from 'piecework';

const { role, redis, name, from, to, batch, callers, failEvery, fullAfter } = JSON.parse(
  process.argv[2],
);
let sealed = false;
let disconnected = false;
let holds = [];
let resumed = 0;
let late = 0;
let pulls = 0;

let live;
const lives = new Promise((resolve) => {
  live = resolve;
});

process.on('message', (message) => {
  if (message === 'sealed') sealed = true;
  if (message === 'live') live();
});
process.on('disconnect', () => {
  // A parent that is gone needs no work done, but for one that this process left itself.
  if (!disconnected) process.exit(1);
});

const queue = await IdQueue.join(name, { redis });
const meters = await queue.meters({
  everyMs: 1_000,
  onReading: (reading) => tell({ reading }),
});

function tell(message) {
  if (process.connected) process.send({ ...message, holds, resumed, late });
  holds = [];
}

async function produce() {
  for (let next = from; next < to; next += batch) {
    const ids = Array.from({ length: Math.min(batch, to - next) }, (_, i) => String(next + i));
    await queue.add(ids);
  }
}

async function consume() {
  for (;;) {
    // Before it is asked: a `none` from before the last add is no end.
    const last = sealed;
    const pulled = await queue.pull();
    if (pulled.state === 'none') {
      if (last) return;
      await sleep(10);
      continue;
    }
    const task = pulled.state === 'timed-out' ? await queue.resume(pulled.key) : pulled;
    if (task.state !== 'ready') continue;
    if (pulled.state === 'timed-out') resumed += 1;
    holds.push([task.key, task.stamp]);
    pulls += 1;
    if (pulls === fullAfter) {
      // It is killed with this task in its hands, or told to go on.
      process.send({ full: true });
      await lives;
    }
    const bad = Number(task.id) % failEvery === 0;
    const counted = bad ? await queue.fail(task.key, `bad ${task.id}`) : await queue.done(task.key);
    if (!counted) late += 1;
  }
}

if (role === 'producer') await produce();
else await Promise.all(Array.from({ length: callers }, consume));
await meters.close();
await queue.close();
disconnected = true;
process.disconnect();
