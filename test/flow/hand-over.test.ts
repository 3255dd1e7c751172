import { setTimeout as sleep } from 'node:timers/promises';
import { entriesIn } from '@piecework/protocol/testing';
import type { HandlerContext } from '@piecework/worker';
import { type Command, Redis } from 'ioredis';
import { describe, expect, vi } from 'vitest';
import { Dispatcher } from '../../packages/worker/dist/dispatcher.js';
import type { RequestSession } from '../../packages/worker/dist/request/request-session.js';
import { SlotAccount } from '../../packages/worker/dist/request/slot-account.js';
import { type Flow, gate, numbers, test } from '../support/flow.js';
import { ownClock } from '../support/own-clock.js';
import { requestsOf } from '../support/script-names.js';
import { until } from '../support/until.js';

/*
 * At the end of its turn a request passes its slots on: others are entered while its last handlers run, and get each
 * slot when a handler has ended.
 */

/** Sends all that a client does, and keeps which requests were entered before their slots were free. */
class Watched extends Redis {
  readonly handedOver: string[] = [];
  onHandOver = (_key: string) => {};

  override sendCommand(command: Command, stream?: never): unknown {
    // Slots that are still in use.
    for (const { key, of } of requestsOf('enter', command)) {
      if (Number(of('awaited')) === 0) continue;
      this.handedOver.push(key);
      this.onHandOver(key);
    }
    return super.sendCommand(command, stream);
  }
}

/**
 * Of requests that were entered before their slots were free, and read to the end by that: how many permits each settle
 * keeps, and how many sub-requests of them the worker still has.
 */
class Keeping extends Redis {
  readonly kept: { keep: number; read: number }[] = [];
  /** By the key of the request. */
  readonly #read = new Map<string, number>();

  override sendCommand(command: Command, stream?: never): unknown {
    for (const { key, of } of requestsOf('settle', command)) this.#settles(key, of);
    const reply = super.sendCommand(command, stream) as Promise<unknown>;
    const entered = requestsOf('enter', command);
    if (entered.length === 0) return reply;
    return reply.then((answer) => {
      for (const [i, { key, of }] of entered.entries()) {
        const [, numbers, , , , , entries] = (answer as string[][])[i] as string[];
        const [permits, , , , , , ready] = String(numbers).split(' ').map(Number);
        this.#read.delete(key);
        if (Number(of('awaited')) > 0 && ready === 0 && permits === entriesIn(entries).length)
          this.#read.set(key, permits as number);
      }
      return answer;
    });
  }

  #settles(key: string, of: (name: string) => string): void {
    const before = this.#read.get(key);
    if (before === undefined) return;
    const [keep, successes] = [Number(of('keep')), Number(of('successes'))];
    const read = before - successes - (Number(of('outcomes')) - successes) / 4;
    this.kept.push({ keep, read });
    this.#read.set(key, read);
  }
}

function watched(flow: Flow): Watched {
  const client = new Watched(flow.redis as string, { lazyConnect: true, protocol: 2 });
  flow.after(() => client.disconnect());
  return client;
}

/** Closed before its client. */
async function start(flow: Flow, options: Parameters<Flow['worker']>[0]): Promise<void> {
  const worker = flow.worker(options);
  flow.after(() => worker.close());
  await worker.start();
}

/** A request that may use all slots of a worker, and what tests do to it. */
async function usingAll(flow: Flow, concurrency: number, handler: (n: number) => unknown) {
  const entering = vi.spyOn(Dispatcher.prototype, 'enterAll');
  flow.after(() => entering.mockRestore());
  const redis = watched(flow);
  await start(flow, { redis, concurrency, handler });
  const request = await flow.producer().open({ id: flow.id('a'), limit: concurrency });
  /** The worker has handled the replies to all that it had sent. */
  const settled = async () => {
    for (let i = 0; i < 10; i += 1) await redis.ping();
  };
  const append = async (...items: number[]) => {
    await request.append(...items);
    await request.flush();
  };
  /** Another request takes so many slots of the worker, and promises them. */
  const takeSlots = async (slots: number) => {
    const { generation } = (await flow.request(request.id).state()) as { generation: number };
    const [dispatcher] = entering.mock.contexts as Dispatcher[];
    const session = dispatcher?.of(request.id, generation) as RequestSession;
    const other = new SlotAccount(session.shard.slots, () => {});
    other.occupy(slots, slots);
    return { session, other };
  };
  return { request, settled, append, takeSlots };
}

/** A turn lasts at most a tenth of a second. */
const quantumMs = 5;
const SLOTS = 6;

describe('a request at the end of its turn', { tags: ['one-server'] }, () => {
  test('passes its slots on while its handlers run, and no slot is used twice', async ({
    flow,
  }) => {
    const runs = new Map<string, number>();
    const redis = watched(flow);
    let most = 0;
    for (let i = 0; i < 2; i += 1) {
      let running = 0;
      const handler = async (n: number, { requestId }: HandlerContext) => {
        runs.set(`${requestId} ${n}`, (runs.get(`${requestId} ${n}`) ?? 0) + 1);
        running += 1;
        most = Math.max(most, running);
        await sleep(5 + (n % 20));
        running -= 1;
        return n;
      };
      await start(flow, { redis, concurrency: SLOTS, quantumMs, handler });
    }
    const producer = flow.producer();
    const ids = numbers(6).map((n) => flow.id(`r${n}`));
    for (const id of ids) await producer.submit(numbers(150), { id, limit: 5 });
    for (const id of ids)
      expect(await flow.complete(id)).toMatchObject({ succeeded: 150, failed: 0 });
    expect(most).toBe(SLOTS);
    expect(new Set(runs.values())).toEqual(new Set([1]));
    expect(runs.size).toBe(6 * 150);
    expect(redis.handedOver.length).toBeGreaterThan(0);
  });

  test('has others keep their permits until slots are free, also those that are read to the end', async ({
    flow,
  }) => {
    const redis = new Keeping(flow.redis as string, { lazyConnect: true, protocol: 2 });
    flow.after(() => redis.disconnect());
    const handler = async (n: number) => {
      await sleep(10 + (n % 20));
      return n;
    };
    await start(flow, { redis, concurrency: SLOTS, quantumMs, handler });
    const producer = flow.producer();
    const large = await producer.open({ id: flow.id('large'), limit: SLOTS });
    const others: string[] = [];
    for (let n = 0; redis.kept.length < 10; n += 1) {
      await large.append(...numbers(20));
      const other = flow.id(`other${n}`);
      await producer.submit(numbers(3), { id: other, limit: SLOTS });
      others.push(other);
      // The large one has work for as long as this one takes.
      expect(await flow.complete(other)).toMatchObject({ succeeded: 3, failed: 0 });
    }
    await large.seal();
    expect(await flow.complete(large.id)).toMatchObject({ succeeded: 20 * others.length });
    for (const { keep, read } of redis.kept) expect(keep).toBe(read);
  });

  test('that gets its next one while it hands over starts nothing before those slots are free', async ({
    flow,
  }) => {
    const held = gate();
    const started: number[] = [];
    const handler = async (n: number) => {
      started.push(n);
      if (n >= 2) await held.opened;
      return n;
    };
    const { request, settled, append, takeSlots } = await usingAll(flow, 4, handler);
    flow.after(() => held.open());
    // Handlers are short, and two run that are the last ones.
    await append(0, 1);
    await until(async () => (await flow.request(request.id).state())?.succeeded === 2);
    await append(2, 3);
    await until(() => started.length === 4);
    await settled();
    const { session, other } = await takeSlots(2);
    await append(4, 5);
    await settled();
    // What waits for those slots is not late, however long this takes.
    const clock = ownClock(flow);
    clock.stop();
    session.enter([], 2, other);
    await until(async () => (await flow.request(request.id).inspect())?.inFlight === 4, {
      what: 'two more are read',
    });
    await settled();
    expect(started).toHaveLength(4);
    clock.go();
    other.occupy(0, 0);
    await until(() => started.length === 6);
    held.open();
    await request.seal();
    expect(await flow.complete(request.id)).toMatchObject({ succeeded: 6, failed: 0 });
  });

  test('starts nothing in slots of others, also if several of its own handlers end at once', async ({
    flow,
  }) => {
    const [first, rest] = [gate(), gate()];
    let [running, most, ended] = [0, 0, 0];
    const handler = async (n: number) => {
      running += 1;
      most = Math.max(most, running);
      if (n >= 2) await (n < 4 ? first : rest).opened;
      running -= 1;
      ended += 1;
      return n;
    };
    const { request, settled, append, takeSlots } = await usingAll(flow, 9, handler);
    flow.after(() => {
      first.open();
      rest.open();
    });
    // Handlers are short. Then six run that are the last ones.
    await append(0, 1);
    await until(async () => (await flow.request(request.id).state())?.succeeded === 2);
    await append(2, 3, 4, 5, 6, 7);
    await until(() => running === 6);
    await settled();
    const { session, other } = await takeSlots(3);
    await append(8, 9, 10);
    await settled();
    const clock = ownClock(flow);
    clock.stop();
    session.enter([], 3, other);
    await until(async () => (await flow.request(request.id).inspect())?.inFlight === 9, {
      what: 'three more are read',
    });
    await settled();
    first.open();
    await until(() => ended === 4);
    await settled();
    expect(most).toBe(6);
    clock.go();
    other.occupy(0, 0);
    rest.open();
    await request.seal();
    expect(await flow.complete(request.id)).toMatchObject({ succeeded: 11, failed: 0 });
  });

  test('keeps no other waiting behind handlers that turn out slow', async ({ flow }) => {
    const stalled = gate();
    flow.after(() => stalled.open());
    const redis = watched(flow);
    const slow = flow.id('slow');
    let other = '';
    const clock = ownClock(flow);
    clock.stop();
    let isEntered = false;
    redis.onHandOver = (key) => {
      if (!key.includes(`{${other}}`) || isEntered) return;
      isEntered = true;
      clock.go();
    };
    const options = { redis, concurrency: 4, quantumMs };
    // However busy the machine is, a handler takes 20 ms at most: until the other is entered, four of them move the clock.
    const handler = async (n: number, { requestId }: HandlerContext) => {
      await sleep(5);
      if (!isEntered) clock.move(5);
      if (requestId === slow && isEntered) await stalled.opened;
      return n;
    };
    await start(flow, { ...options, handler });
    const producer = flow.producer();
    const request = await producer.open({ id: slow, limit: 4 });
    let appended = 0;
    // One that comes while slots are free is entered with those: then the next one is tried.
    for (let n = 0; !isEntered; n += 1) {
      await request.append(...numbers(400));
      appended += 400;
      other = flow.id(`other${n}`);
      await producer.submit(numbers(20), { id: other, limit: 4 });
      const ended = async () => (await flow.request(other).state())?.status === 'complete';
      await until(async () => isEntered || (await ended()), { what: 'the other is entered' });
    }
    await request.seal();
    // All permits of the other are in the first worker, which has no slot for them.
    await start(flow, { concurrency: 4, handler });
    expect(await flow.complete(other)).toMatchObject({ succeeded: 20, failed: 0 });
    expect(isEntered).toBe(true);
    stalled.open();
    expect(await flow.complete(slow)).toMatchObject({ succeeded: appended, failed: 0 });
  });
});
