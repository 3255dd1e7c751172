// A process that consumes a RetryQueue, or takes of a Scheduler. Its only argument is JSON:
// { redis, name, kind: 'retry' | 'schedule', leaseMs, demand, workMs }.
// Says { ready: true }; then of each { took: key }, { settled: key, counted } and { lost: key }.
import { writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { RetryQueue, Scheduler } from '@piecework/queues';

const { redis, name, kind, leaseMs, demand, workMs } = JSON.parse(process.argv[2]);
// Synchronous: nothing that is buffered outlives a signal.
const say = (what) => writeSync(1, `${JSON.stringify(what)}\n`);

async function settle(key, signal, call) {
  say({ took: key });
  await sleep(workMs, undefined, { signal }).catch(() => say({ lost: key }));
  say({ settled: key, counted: await call() });
}

async function consume() {
  const queue = new RetryQueue({ redis, name });
  say({ ready: true });
  for await (const task of queue.items({ leaseMs, demand })) {
    // The first time each comes again.
    const call = () => (task.numFailures === 0 ? task.retry({ delayMs: 50 }) : task.done());
    void settle(`${task.key} ${task.numFailures}`, task.signal, call);
  }
}

async function take() {
  const scheduler = new Scheduler({ redis, name });
  say({ ready: true });
  for await (const { object } of scheduler.due({ lockMs: leaseMs, demand })) {
    void settle(object, undefined, () => scheduler.remove(object));
  }
}

await (kind === 'retry' ? consume() : take());
