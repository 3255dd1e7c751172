import { ControlCommands } from '@piecework/protocol';
import { run } from '@piecework/protocol/testing';
import { describe, expect, it } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import {
  back,
  failure,
  given,
  Hand,
  holds,
  LEASE_MS,
  PRODUCER,
  type Scene,
  success,
} from '../support/given.js';
import { inspect } from '../support/peek.js';

useTestClock();

type Held = Partial<Parameters<Scene['request']['settle']>[2]>;

/** A settle by that hand which reads as well; by default it keeps all permits and runs nothing. */
function settleAndRead(
  { request, generation }: Scene,
  hand: Hand,
  outcomes: Parameters<Scene['request']['settle']>[3],
  held: Held & { read: number },
) {
  if (held.op === undefined) hand.op += 1;
  const { op, grantNo, permits: keep } = hand;
  const numbers = { op, grantNo, leaseMs: LEASE_MS, keep, running: 0, ...held };
  return request.settle(generation, hand.name, numbers, outcomes);
}

const indexes = (entries: readonly { index: number }[]) => entries.map(({ index }) => index);

describe('a settle that reads', () => {
  it('brings new sub-requests for the permits that are left without a handler', async () => {
    const scene = await given.filled({ items: 9, limit: 4 });
    const worker = new Hand(scene);
    const [first, second] = (await worker.hold(4)).slice(0, 2);
    const done = [success(first!), success(second!)];
    const { settled, entries, unsure } = await settleAndRead(scene, worker, done, {
      running: 2,
      read: 2,
    });
    expect(settled).toMatchObject({ verdict: 'ok', permits: 4 });
    expect(indexes(entries)).toEqual([4, 5]);
    expect(unsure).toBe(false);
    expect((await inspect(scene)).counts).toMatchObject({ succeeded: 2, inFlight: 4, ready: 3 });
  });

  it('brings no more than was asked, than is there, nor than there are permits for', async () => {
    const scene = await given.filled({ items: 6, limit: 4 });
    const worker = new Hand(scene);
    await worker.enter(4);
    expect(indexes((await settleAndRead(scene, worker, [], { read: 1 })).entries)).toEqual([0]);
    const most = await settleAndRead(scene, worker, [], { running: 1, read: 50 });
    expect(indexes(most.entries)).toEqual([1, 2, 3]);
    const full = await settleAndRead(scene, worker, [], { running: 4, read: 50 });
    expect(full.entries).toEqual([]);
    const all = most.entries.map((entry) => success(entry));
    const rest = await settleAndRead(scene, worker, all, { running: 1, read: 50 });
    expect(indexes(rest.entries)).toEqual([4, 5]);
    expect((await inspect(scene)).counts).toMatchObject({ inFlight: 3, ready: 0 });
  });

  const halts: Record<string, (scene: Scene) => Promise<unknown>> = {
    'is paused': ({ connection, id, generation }) =>
      new ControlCommands(connection, id).pause(generation),
    'is held': (scene) => holds(scene).hold(scene.generation, 60_000),
    'is being cancelled': ({ request, generation }) => request.cancel(generation),
    'has a lower limit': ({ connection, request }) =>
      connection.client.hset(request.keys.request, 'limit', '1'),
  };
  for (const [what, halt] of Object.entries(halts)) {
    it(`brings nothing when the request ${what}`, async () => {
      const scene = await given.filled({ items: 9, limit: 2 });
      const worker = new Hand(scene);
      const [first] = await worker.hold(2);
      await halt(scene);
      const told = await settleAndRead(scene, worker, [success(first!)], { running: 1, read: 1 });
      expect(told.settled).toMatchObject({ verdict: 'ok', permits: 1 });
      expect(told).toMatchObject({ entries: [], unsure: false });
      expect((await inspect(scene)).counts).toMatchObject({ succeeded: 1, inFlight: 1 });
    });
  }

  it('brings nothing when it ends the request for too many failures', async () => {
    const ends = { toleratedFailures: '0', onExceeded: 'cancel' } as const;
    const scene = await given.filled({ items: 9, limit: 2, attempts: 1, ...ends });
    const worker = new Hand(scene);
    const [first] = await worker.hold(2);
    const told = await settleAndRead(scene, worker, [failure(first!)], { running: 1, read: 1 });
    expect(told.settled).toMatchObject({ cancelling: true, permits: 1 });
    expect(told.entries).toEqual([]);
    await inspect(scene);
  });

  it('brings nothing when it comes a second time, and says that it cannot tell', async () => {
    const scene = await given.filled({ items: 9, limit: 4 });
    const worker = new Hand(scene);
    const [first] = await worker.hold(2);
    const send = () =>
      settleAndRead(scene, worker, [success(first!)], { op: worker.op + 1, running: 1, read: 1 });
    expect(indexes((await send()).entries)).toEqual([2]);
    const { now: _, ...before } = await inspect(scene);
    const again = await send();
    expect(again).toMatchObject({
      settled: { verdict: 'ok', permits: 2 },
      entries: [],
      unsure: true,
    });
    expect(await inspect(scene)).toMatchObject(before);
    // What the first one brought can be asked for.
    const pending = await scene.request.pending(worker.name, 10);
    expect(pending.map((entry) => entry.split('-')[1])).toEqual(['1', '2']);
  });

  it('brings nothing when it comes after a later one', async () => {
    const scene = await given.filled({ items: 9, limit: 4 });
    const worker = new Hand(scene);
    const [first] = await worker.hold(2);
    await worker.settle([success(first!)], { keep: 2, running: 1, op: 9 });
    const late = await settleAndRead(scene, worker, [], { op: 8, running: 1, read: 1 });
    expect(late).toMatchObject({ entries: [], unsure: true });
    const asksNothing = await settleAndRead(scene, worker, [], { op: 8, running: 1, read: 0 });
    expect(asksNothing).toMatchObject({ entries: [], unsure: false });
    expect((await inspect(scene)).counts).toMatchObject({ inFlight: 1, ready: 7 });
  });

  it('brings nothing to a worker whose lease ended', async () => {
    const scene = await given.filled({ items: 9, limit: 4 });
    const worker = new Hand(scene);
    await worker.enter(2);
    moveClock(LEASE_MS + 1);
    await scene.request.tend(scene.generation, '');
    const told = await settleAndRead(scene, worker, [], { read: 2 });
    expect(told).toMatchObject({ settled: { permits: 0 }, entries: [], unsure: false });
    expect((await inspect(scene)).counts).toMatchObject({ inFlight: 0, ready: 9 });
  });

  it('brings payloads as they are, whatever they hold', async () => {
    const payloads = ['', '1', '\u001e', 'a\u001eb', '"ß 語 \\u001e"', '', '\u001e\u001e', ' '];
    const scene = await given.created({ limit: 8 });
    await scene.request.append(scene.generation, PRODUCER, 0, payloads);
    const worker = new Hand(scene);
    await worker.enter(8);
    const read: string[] = [];
    for (const count of [2, 1, 3, 2]) {
      const held = { running: read.length, read: count };
      const { entries } = await settleAndRead(scene, worker, [], held);
      expect(indexes(entries)).toEqual(
        payloads.map((_, i) => i).slice(read.length, read.length + count),
      );
      read.push(...entries.map(({ payload }) => payload));
    }
    expect(read).toEqual(payloads);
  });

  it('brings long payloads as an array, and short ones as one text', async () => {
    const scene = await given.created({ limit: 4 });
    const payloads = ['"a"', '"b"', `"${'x'.repeat(600)}"`, `"${'y'.repeat(600)}"`];
    await scene.request.append(scene.generation, PRODUCER, 0, payloads);
    const worker = new Hand(scene);
    await worker.enter(4);
    const { keys } = scene.request;
    const read = async (running: number) => {
      worker.op += 1;
      const nothing = { newest: -1, values: '', costs: '[]', successes: 0, outcomes: [] };
      const { op, grantNo } = worker;
      const { generation, connection } = scene;
      const of = { generation, op, grantNo, keep: 4, running, channel: keys.channel, answered: 0 };
      const settling = [{ ...nothing, ...of, read: 2, ahead: 0 }];
      const args = { worker: worker.name, leaseMs: LEASE_MS, settling };
      const [reply] = await run(connection.client, 'settle', { requests: [keys] }, args);
      return reply?.verdict === 'ok' ? reply.entries : reply;
    };
    const entry = (index: number) => `${scene.generation}-${index}`;
    expect(await read(0)).toBe([entry(0), payloads[0], entry(1), payloads[1]].join('\u001e'));
    expect(await read(2)).toEqual([entry(2), payloads[2], entry(3), payloads[3]]);
  });

  it('has settled also when nothing can be read', async () => {
    const scene = await given.filled({ items: 9, limit: 4 });
    const worker = new Hand(scene);
    const entries = await worker.hold(2);
    await worker.settle(entries.map((entry) => success(entry)));
    // Somebody took the group away by hand.
    await scene.connection.client.xgroup('DESTROY', scene.request.keys.work, 'workers');
    const told = await settleAndRead(scene, worker, [], { read: 2 });
    expect(told).toMatchObject({ settled: { verdict: 'ok', permits: 2 }, entries: [] });
    await scene.connection.client.xgroup(
      'CREATE',
      scene.request.keys.work,
      'workers',
      `${scene.generation}-1`,
      'ENTRIESREAD',
      2,
    );
    const healed = await settleAndRead(scene, worker, [], { read: 2 });
    expect(indexes(healed.entries)).toEqual([2, 3]);
    await worker.settle(healed.entries.map((entry) => back(entry)));
    await inspect(scene);
  });
});
