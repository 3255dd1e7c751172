import type { RedisInput } from '@piecework/protocol';
import { Admin } from 'piecework';
import { describe, expect } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import { type Flow, gate, numbers, test } from '../support/flow.js';
import { until } from '../support/until.js';

/*
 * The clock of the server steps while producers and workers live, or die. The scripts' clock is moved; TTLs of keys
 * and timers of processes are not.
 */

useTestClock();

const HOUR_MS = 3_600_000;
const LEASE_MS = 2_000;

const lifeOf = async (flow: Flow, id: string) => (await flow.request(id).state())?.generation ?? 0;
const counter = (flow: Flow, name: string) =>
  flow.connection.client.hget(flow.queueCommands.keys.counters, name);

/** A worker enters for all there is, says when its lease is over, and dies. */
async function dies(flow: Flow, id: string): Promise<void> {
  const generation = await lifeOf(flow, id);
  const request = flow.request(id);
  const entered = await request.enter({
    generation,
    worker: 'dead',
    op: 1,
    want: 3,
    leaseMs: LEASE_MS,
    tasks: '*',
    epochs: [],
    most: 3,
  });
  if (entered.verdict !== 'ok' || entered.permits < 3) throw new Error('it got no permits');
  await flow.queueCommands.note(id, generation, entered.ends);
}

/** The agenda was looked at so often since, and what the ticks said has been heard. */
async function looks(flow: Flow, count: number): Promise<void> {
  for (let look = 0; look < count; look += 1) {
    const before = await counter(flow, 'tickedAt');
    await until(async () => (await counter(flow, 'tickedAt')) !== before);
  }
}

describe('a clock that goes back by an hour', () => {
  test('leaves nothing of a dead worker lying', async ({ flow }) => {
    const { id } = await flow.producer().submit(numbers(3), { limit: 3 });
    await flow.queueCommands.tick('', '');
    await dies(flow, id);
    moveClock(-HOUR_MS);
    await flow.worker({ handler: (n: number) => n, leaseMs: LEASE_MS }).start();
    expect(await flow.complete(id)).toMatchObject({ succeeded: 3 });
  });
});

describe('a clock that goes back by a minute', () => {
  test('neither lets a paused queue run, nor keeps one that was resumed', async ({ flow }) => {
    const admin = new Admin({ redis: flow.redis as RedisInput, queue: flow.queue });
    flow.after(() => admin.close());
    const ran: number[] = [];
    await flow.worker({ handler: (n: number) => void ran.push(n) }).start();
    const first = await flow.producer().submit([1]);
    // By then it has heard a tick, as its first one is at once.
    await flow.complete(first.id);
    moveClock(-60_000);
    await admin.pauseQueue();
    flow.after(() => admin.resumeQueue());
    await looks(flow, 2);
    const { id } = await flow.producer().submit([2, 3]);
    await looks(flow, 1);
    expect(ran).toEqual([1]);
    moveClock(-60_000);
    await admin.resumeQueue();
    expect(await flow.complete(id)).toMatchObject({ succeeded: 2 });
  });
});

describe('a clock that goes forward by more than a lease', () => {
  test('cancels no stream whose producer lives', async ({ flow }) => {
    const done = gate();
    let runs = 0;
    const handler = async () => {
      runs += 1;
      await done.opened;
    };
    await flow.worker({ handler, concurrency: 1 }).start();
    const request = await flow.producer().open({ onProducerLost: 'cancel' });
    await request.append(1);
    await request.flush();
    await until(() => runs === 1);
    await looks(flow, 1);
    moveClock(40_000);
    await until(() => counter(flow, 'resumedAt'));
    await flow.queueCommands.note(request.id, await lifeOf(flow, request.id), 0);
    await looks(flow, 3);
    expect((await flow.request(request.id).state())?.status).toBe('open');
    done.open();
    await request.append(2);
    await request.seal();
    expect(await flow.complete(request.id)).toMatchObject({ succeeded: 2 });
    expect(runs).toBe(2);
  });
});

describe('an hour forward for a moment', () => {
  test('keeps nothing of a worker that dies later', async ({ flow }) => {
    const worker = flow.worker({ handler: (n: number) => n, leaseMs: LEASE_MS });
    await worker.start();
    const warm = await flow.producer().submit([1]);
    await flow.complete(warm.id);
    await looks(flow, 2);
    moveClock(HOUR_MS);
    await until(() => counter(flow, 'resumedAt'));
    moveClock(-HOUR_MS);
    await looks(flow, 1);
    await worker.close();
    const { id } = await flow.producer().submit(numbers(3), { limit: 3 });
    await dies(flow, id);
    await flow.worker({ handler: (n: number) => n, leaseMs: LEASE_MS }).start();
    expect(await flow.complete(id)).toMatchObject({ succeeded: 3 });
  });
});
