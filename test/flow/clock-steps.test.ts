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

const generationOf = async (flow: Flow, id: string) =>
  (await flow.request(id).state())?.generation ?? 0;
const counter = (flow: Flow, name: string) =>
  flow.connection.client.hget(flow.queueCommands.keys.counters, name);

/** A worker enters for all there is, says when its lease is over, and dies. */
async function dies(flow: Flow, id: string): Promise<void> {
  const generation = await generationOf(flow, id);
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
  await flow.queueCommands.scheduleTend(id, generation, entered.ends);
}

/** Waits until so many ticks have run since, and their answers have been received. */
async function ticks(flow: Flow, count: number): Promise<void> {
  for (let tick = 0; tick < count; tick += 1) {
    const before = await counter(flow, 'tickedAt');
    await until(async () => (await counter(flow, 'tickedAt')) !== before);
  }
}

describe('a clock that goes back by an hour', () => {
  test('does not delay the recovery from a dead worker', async ({ flow }) => {
    const { id } = await flow.producer().submit(numbers(3), { limit: 3 });
    await flow.queueCommands.tick('', '');
    await dies(flow, id);
    moveClock(-HOUR_MS);
    await flow.worker({ handler: (n: number) => n, leaseMs: LEASE_MS }).start();
    expect(await flow.complete(id)).toMatchObject({ succeeded: 3 });
  });
});

describe('a clock that goes back by a minute', () => {
  test('neither resumes a paused queue nor keeps a resumed one paused', async ({ flow }) => {
    const admin = new Admin({ redis: flow.redis as RedisInput, queue: flow.queue });
    flow.after(() => admin.close());
    const ran: number[] = [];
    await flow.worker({ handler: (n: number) => void ran.push(n) }).start();
    const first = await flow.producer().submit([1]);
    // By then the worker has received the answer of a tick, as it sends its first one at once.
    await flow.complete(first.id);
    moveClock(-60_000);
    await admin.pauseQueue();
    flow.after(() => admin.resumeQueue());
    await ticks(flow, 2);
    const { id } = await flow.producer().submit([2, 3]);
    await ticks(flow, 1);
    expect(ran).toEqual([1]);
    moveClock(-60_000);
    await admin.resumeQueue();
    expect(await flow.complete(id)).toMatchObject({ succeeded: 2 });
  });
});

describe('a clock that goes forward by more than a lease', () => {
  test('cancels no stream whose producer is running', async ({ flow }) => {
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
    await ticks(flow, 1);
    moveClock(40_000);
    await until(() => counter(flow, 'resumedAt'));
    await flow.queueCommands.scheduleTend(request.id, await generationOf(flow, request.id), 0);
    await ticks(flow, 3);
    expect((await flow.request(request.id).state())?.status).toBe('open');
    done.open();
    await request.append(2);
    await request.seal();
    expect(await flow.complete(request.id)).toMatchObject({ succeeded: 2 });
    expect(runs).toBe(2);
  });
});

describe('a clock that goes forward by an hour for a moment', () => {
  test('does not delay the recovery from a worker that dies later', async ({ flow }) => {
    const worker = flow.worker({ handler: (n: number) => n, leaseMs: LEASE_MS });
    await worker.start();
    const warm = await flow.producer().submit([1]);
    await flow.complete(warm.id);
    await ticks(flow, 2);
    moveClock(HOUR_MS);
    await until(() => counter(flow, 'resumedAt'));
    moveClock(-HOUR_MS);
    await ticks(flow, 1);
    await worker.close();
    const { id } = await flow.producer().submit(numbers(3), { limit: 3 });
    await dies(flow, id);
    await flow.worker({ handler: (n: number) => n, leaseMs: LEASE_MS }).start();
    expect(await flow.complete(id)).toMatchObject({ succeeded: 3 });
  });
});
