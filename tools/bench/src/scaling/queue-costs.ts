import { PRIORITIES } from '@piecework/protocol';
import type { Redis } from 'ioredis';
import type { CallCost, QUEUE_CALLS } from './costs.js';
import type { Lane, Meter } from './meter.js';

type QueueCosts = Record<(typeof QUEUE_CALLS)[number], CallCost>;

const PRIORITY = 50;
const ABOUT = JSON.stringify({ pid: 1, host: 'host', concurrency: 10, tasks: '*', running: 10 });

/** The queue side: one hash slot, whatever the number of masters. */
export async function queueCosts(meter: Meter, calls: number): Promise<QueueCosts> {
  const [first] = meter.lanes as [Lane];
  const { queue } = first;
  const generation = await queue.intent('other');
  const token = { id: 'other', generation, mint: 1, epoch: 1, priority: PRIORITY };
  const pop = ({ connection }: Lane, seconds: number) =>
    (connection.client as Redis).blmpop(
      seconds,
      PRIORITIES,
      ...queue.keys.lists,
      'RIGHT',
      'COUNT',
      1,
    );

  const opened = new Map<string, number>();
  const intent = await meter.measure(calls, async (lane, turn) => {
    const id = `id-${lane.number}-${turn}`;
    opened.set(id, await lane.queue.intent(id));
  });
  const push = await meter.measure(calls, (lane) => lane.queue.push(token));
  // The end of the list is full of the asker's own tokens: the longest look.
  const shouldYield = await meter.measure(calls, (lane) =>
    lane.queue.shouldYield('other', PRIORITY),
  );
  const exchange = await meter.measure(calls, (lane) => lane.queue.exchange(token, 1));
  const popAtHand = await meter.measure(calls, (lane) => pop(lane, 5));
  await first.connection.client.unlink(queue.keys.list(PRIORITY));
  const popTimedOut = await meter.measure(Math.ceil(calls / 10), (lane) => pop(lane, 0.001));
  const finish = await meter.measure(calls, (lane, turn) => {
    const id = `id-${lane.number}-${turn}`;
    return lane.queue.finish(id, opened.get(id) as number, 'succeeded');
  });
  const tick1 = await meter.measure(calls, (lane) => lane.queue.tick('w1', ABOUT));
  for (let i = 0; i < 1_000; i += 1) await queue.tick(`w${i}`, ABOUT);
  const tick1000 = await meter.measure(calls, (lane, turn) =>
    lane.queue.tick(`w${turn % 1_000}`, ABOUT),
  );
  const claim = { id: 'other', generation, passed: '', claim: 0 };
  // Its own claim stands, as the score is set by hand: the way that puts the request to sleep.
  const next = Date.now() + 3_600_000;
  await first.connection.client.zadd(queue.keys.agenda, next, 'other');
  const tended = { mint: 0, epoch: 1, priority: PRIORITY, before: '', next, parked: '' };
  const writeBack = await meter.measure(calls, (lane) =>
    lane.queue.writeBack({ ...claim, claim: next }, tended),
  );
  return {
    ...{ intent, push, 'should-yield': shouldYield, exchange, popAtHand, popTimedOut },
    ...{ tick1, tick1000, writeBack, finish },
  };
}
