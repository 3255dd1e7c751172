import { ControlCommands, QueueControlCommands } from '@piecework/protocol';
import { describe, expect, it } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import {
  failure,
  given,
  Hand,
  type Options,
  popAll,
  type Scene,
  success,
  tickOnce,
} from '../support/given.js';
import { inspect, inspectQueue } from '../support/peek.js';

useTestClock();

const control = ({ connection, id }: Scene) => new ControlCommands(connection, id);
const queueControl = ({ connection, queue }: Scene) =>
  new QueueControlCommands(connection, queue.keys.queue);

/** Sealed; a worker runs `n` of its sub-requests. */
async function running(n: number, options: Options = {}) {
  const scene = await given.sealed({ items: 10, limit: 5, ...options });
  const hand = new Hand(scene);
  const entries = await hand.hold(n);
  return { scene, hand, entries };
}

describe('a paused request', () => {
  it('grants nothing, mints nothing and hands nothing out, and what runs may end', async () => {
    const { scene, hand, entries } = await running(3);
    expect(await control(scene).pause(scene.generation)).toMatchObject({ verdict: 'ok', mint: 0 });
    expect(await new Hand(scene, 'another').enter(2, [1, 1])).toMatchObject({
      permits: 0,
      mint: 0,
    });
    expect(await hand.settle([success(entries[0]!)], { keep: 3, running: 2 })).toMatchObject({
      permits: 2,
      mint: 0,
    });
    await hand.settle([failure(entries[1]!)], { keep: 2, running: 1 });
    expect(await hand.settle([success(entries[2]!)], { keep: 1 })).toMatchObject({
      permits: 0,
      mint: 0,
    });
    expect(await inspect(scene)).toMatchObject({ granted: 0, out: 0, outBefore: 0 });
    expect(await scene.request.tend(scene.generation, '')).toMatchObject({ mint: 0 });
  });

  it('goes on with the tokens that are missing then, and mints them once', async () => {
    const { scene, hand, entries } = await running(1);
    await control(scene).pause(scene.generation);
    await hand.settle([success(entries[0]!)], { keep: 0 });
    await popAll(scene);
    await new Hand(scene, 'another').enter(2, [1]);
    expect(await control(scene).resume(scene.generation)).toMatchObject({ verdict: 'ok', mint: 1 });
    expect(await control(scene).resume(scene.generation)).toMatchObject({ verdict: 'ok', mint: 0 });
    expect(await new Hand(scene, 'another').tryEnter(2)).toMatchObject({ permits: 0 });
    expect(await hand.enter(2)).toMatchObject({ permits: 2 });
  });

  it('finds its tokens again whose push was lost with who resumed it', async () => {
    const scene = await given.sealed({ items: 3, limit: 1 });
    await control(scene).pause(scene.generation);
    await popAll(scene);
    await new Hand(scene).enter(1);
    expect(await control(scene).resume(scene.generation)).toMatchObject({ mint: 1 });
    await scene.queue.scheduleTend(scene.id, scene.generation, 0);
    for (let i = 0; i < 3; i += 1) {
      await tickOnce(scene);
      moveClock(61_000);
    }
    expect(await popAll(scene)).toHaveLength(1);
  });

  it('is cancelled like any other', async () => {
    const { scene, hand, entries } = await running(1);
    await control(scene).pause(scene.generation);
    expect(await scene.request.cancel(scene.generation)).toMatchObject({ verdict: 'cancelling' });
    expect(await control(scene).pause(scene.generation)).toEqual({ verdict: 'cancelling' });
    expect(await control(scene).resume(scene.generation)).toEqual({ verdict: 'cancelling' });
    expect(await hand.trySettle([success(entries[0]!)], { keep: 0 })).toEqual({
      verdict: 'complete',
      outcome: 'cancelled',
    });
    for (const call of ['pause', 'resume'] as const) {
      expect(await control(scene)[call](scene.generation)).toEqual({
        verdict: 'complete',
        outcome: 'cancelled',
      });
      expect(await control(scene)[call](scene.generation + 1)).toEqual({ verdict: 'gone' });
    }
  });
});

describe('an update of the limit', () => {
  it('upwards mints at once', async () => {
    const { scene } = await running(2, { limit: 2 });
    await popAll(scene);
    const updated = await control(scene).update(scene.generation, { limit: 8 });
    expect(updated).toMatchObject({ verdict: 'ok', mint: 2 });
    expect(await new Hand(scene, 'another').enter(6)).toMatchObject({ permits: 6 });
  });

  it('downwards grants nothing until running work has drained', async () => {
    const { scene, hand, entries } = await running(5);
    const other = new Hand(scene, 'another');
    await control(scene).update(scene.generation, { limit: 2 });
    expect(await scene.request.inspect()).toMatchObject({ state: { limit: '2', granted: '5' } });
    expect(await other.enter(5)).toMatchObject({ permits: 0, mint: 0 });
    // Whatever it means to keep: no more than what runs, as long as that is above the limit.
    for (const left of [4, 3, 2]) {
      expect(await hand.settle([success(entries[4 - left]!)], { keep: 5, running: left })).toEqual(
        expect.objectContaining({ permits: left, mint: 0 }),
      );
    }
    // From here on it may start another for each that ends.
    expect(await hand.settle([success(entries[3]!)], { keep: 2, running: 1 })).toMatchObject({
      permits: 2,
    });
    await inspect(scene);
  });

  it('leaves the rest as it is, and is refused of what has ended', async () => {
    const scene = await given.sealed({ items: 1, priority: 7 });
    await control(scene).update(scene.generation, { toleratedFailures: '1' });
    const { fields } = await inspect(scene);
    expect(fields).toMatchObject({ limit: '3', priority: '7', epoch: '1', toleratedFailures: '1' });
    const hand = new Hand(scene);
    const [only] = await hand.hold(1);
    expect(await hand.trySettle([failure(only!)])).toEqual({
      verdict: 'complete',
      outcome: 'succeeded',
    });
    expect(await control(scene).update(scene.generation, { limit: 1 })).toEqual({
      verdict: 'complete',
      outcome: 'succeeded',
    });
  });
});

describe('an update of the priority', () => {
  it('mints into the new list, and the tokens in the old one die at enter', async () => {
    const scene = await given.sealed({ items: 5, limit: 2, priority: 90 });
    const { id, generation, queue } = scene;
    const updated = await control(scene).update(generation, { priority: 3 });
    expect(updated).toMatchObject({ verdict: 'ok', mint: 1, epoch: 3, priority: 3 });
    if (updated.verdict === 'ok') await queue.push({ id, generation, ...updated });
    expect((await inspectQueue(scene)).lists).toEqual({
      3: [`${id}~${generation}~3`],
      90: [`${id}~${generation}~1`],
    });
    expect(await new Hand(scene, 'old').enter(2, [1])).toMatchObject({ permits: 0, mint: 0 });
    expect(await inspect(scene)).toMatchObject({ out: 1, outBefore: 0, granted: 0 });
    expect(await new Hand(scene, 'new').enter(2, [3])).toMatchObject({ permits: 2, priority: 3 });
    // Again with the same: no further step.
    expect(await control(scene).update(generation, { priority: 3 })).toMatchObject({
      epoch: 3,
      mint: 0,
    });
  });

  for (const lost of [false, true]) {
    it(`is borne by marks of the old list; the push lost: ${lost}`, async () => {
      const scene = await given.sealed({ items: 5, limit: 1, priority: 90 });
      const { id, generation, queue } = scene;
      // Looked at: asleep until the old list has been popped up to its mark.
      await queue.scheduleTend(id, generation, 0);
      await tickOnce(scene);
      expect(await inspectQueue(scene)).toMatchObject({ wait: { [id]: { priority: 90 } } });
      const updated = await control(scene).update(generation, { priority: 3 });
      if (updated.verdict === 'ok' && !lost) await queue.push({ id, generation, ...updated });
      await queue.scheduleTend(id, generation, 0);
      await tickOnce(scene);
      const { wait, agenda } = await inspectQueue(scene);
      expect(wait[id]?.priority).toBe(3);
      expect(agenda[id]).toBeUndefined();
      await popAll(scene);
      for (let i = 0; i < 3; i += 1) {
        await tickOnce(scene);
        moveClock(6_000);
      }
      // What was popped, or never came, is found lost, and is minted into the new list.
      const tokens = (await inspectQueue(scene)).lists;
      expect(Object.keys(tokens)).toEqual(['3']);
      const [, , epoch] = String(tokens[3]).split('~');
      expect(await new Hand(scene).enter(1, [epoch as string])).toMatchObject({ permits: 1 });
    });
  }

  it('does not bring back tokens of the old list by a write-back that comes late', async () => {
    const scene = await given.sealed({ items: 5, limit: 1, priority: 90 });
    const { id, generation, queue, request } = scene;
    await queue.scheduleTend(id, generation, 0);
    const [claim] = (await queue.tick('', '')).claims;
    const tended = await request.tend(generation, '');
    await control(scene).update(generation, { priority: 3 });
    await queue.writeBack(claim!, tended as never);
    await queue.scheduleTend(id, generation, 0);
    await tickOnce(scene);
    expect(await inspectQueue(scene)).toMatchObject({ wait: { [id]: { priority: 3 } } });
  });
});

describe('a worker of a request that is being cancelled', () => {
  it('learns it by renewal and by settle, and keeps its lease', async () => {
    const { scene, hand, entries } = await running(2);
    await scene.request.cancel(scene.generation);
    expect(await hand.renew()).toEqual({ verdict: 'cancelling', permits: 2 });
    const settled = await hand.settle([success(entries[0]!)], { keep: 2, running: 1 });
    expect(settled).toMatchObject({ cancelling: true, permits: 1 });
    expect((await inspect(scene)).fields).toMatchObject({ endReason: 'cancel' });
    expect(await hand.trySettle([failure(entries[1]!)])).toMatchObject({ outcome: 'cancelled' });
  });
});

describe('a paused queue', () => {
  it('says so with every tick until it is resumed', async () => {
    const scene = await given.opened();
    const { queue } = scene;
    expect((await queue.tick('', '')).pausedUntil).toBe(-1);
    await queueControl(scene).pause(0);
    expect((await queue.tick('', '')).pausedUntil).toBe(0);
    expect(await queue.counts()).toMatchObject({ pausedUntil: 0 });
    expect(await queueControl(scene).resume()).toBe(true);
    expect(await queueControl(scene).resume()).toBe(false);
    expect((await queue.tick('', '')).pausedUntil).toBe(-1);
    expect(await queue.counts()).toMatchObject({ pausedUntil: undefined });
  });

  it('resumes by itself when its time has passed, the longest of those asked for', async () => {
    const scene = await given.opened();
    const { queue } = scene;
    const long = await queueControl(scene).pause(20_000);
    expect(long.until).toBe(long.at + 20_000);
    expect(await queueControl(scene).pause(5_000)).toMatchObject({ until: long.until });
    moveClock(19_000);
    expect((await queue.tick('', '')).pausedUntil).toBe(long.until);
    moveClock(2_000);
    // No tick has noticed its end.
    expect(await queueControl(scene).resume()).toBe(false);
    expect((await queue.tick('', '')).pausedUntil).toBe(-1);
    // Without an end, nothing shortens it but the resume.
    await queueControl(scene).pause(0);
    expect(await queueControl(scene).pause(1)).toMatchObject({ until: 0 });
    await queueControl(scene).resume();
  });
});
