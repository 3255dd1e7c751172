import { Admin } from 'piecework';
import { describe, expect, it } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import {
  connected,
  freshName,
  given,
  Hand,
  popAll,
  type Scene,
  success,
  tickOnce,
} from '../support/given.js';
import { inspect, inspectQueue, peekQueue } from '../support/peek.js';

/*
 * A request that no tick would ever claim again: the queue side was rolled back alone, as when the shard that
 * holds it lost its last writes in a failover.
 */

useTestClock();

/** Takes all that the queue side knows; the request side stays as it is. */
async function loseQueue({ queue, connection }: Scene): Promise<void> {
  const { keys } = queue;
  const known = [keys.open, keys.agenda, keys.wait, keys.marks, keys.pushed, keys.counters];
  await connection.client.unlink(...known, ...keys.lists);
}

const adminOf = async ({ queue }: Scene) =>
  new Admin({ redis: await connected(), queue: queue.keys.queue });

describe('repair', () => {
  it('has a request that the queue side lost tended and finished', async () => {
    const scene = await given.sealed({ items: 2, limit: 1 });
    await loseQueue(scene);
    expect(await tickOnce(scene)).toBe(0);
    const admin = await adminOf(scene);
    expect(await admin.repair()).toEqual([scene.id]);
    expect((await inspectQueue(scene)).open).toEqual({ [scene.id]: scene.generation });
    let tokens: string[] = [];
    for (let passed = 0; passed < 60_000 && tokens.length === 0; passed += 3_000) {
      moveClock(3_000);
      await tickOnce(scene);
      tokens = await popAll(scene);
    }
    const worker = new Hand(scene);
    const [one] = await worker.hold(1, [tokens[0]!.split('~')[2]!]);
    await worker.settle([success(one!)], { keep: 1 });
    const [two] = await worker.read(1);
    expect(await worker.trySettle([success(two!)])).toMatchObject({ verdict: 'complete' });
    await scene.queue.scheduleTend(scene.id, scene.generation, 0);
    await tickOnce(scene);
    expect((await inspectQueue(scene)).open).toEqual({});
  });

  it('leaves alone what is known, what has ended, and what is of another queue', async () => {
    const known = await given.filled();
    const { queue } = known.queue.keys;
    const ended = await given.sealed({ items: 0, queue });
    await ended.queue.finish(ended.id, ended.generation, 'succeeded');
    const elsewhere = await given.filled();
    await loseQueue(elsewhere);
    const before = await peekQueue(known);
    expect(await (await adminOf(known)).repair()).toEqual([]);
    expect(await peekQueue(known)).toEqual(before);
    expect((await peekQueue(elsewhere)).open).toEqual({});
  });

  it('replaces an earlier generation that came back, and no later one', async () => {
    const scene = await given.filled();
    const { id, generation, queue, connection } = scene;
    await connection.client.hset(queue.keys.open, id, generation - 5);
    expect(await queue.reopen(id, generation)).toBe(true);
    await connection.client.hset(queue.keys.open, id, generation + 5);
    expect(await queue.reopen(id, generation)).toBe(false);
    expect((await peekQueue(scene)).open).toEqual({ [id]: generation + 5 });
  });

  it('keeps every later generation greater', async () => {
    const scene = await given.filled();
    const { id, queue, connection } = scene;
    // As if the clock of the server had been ahead, before its place was taken by another.
    const ahead = Date.now() + 1_000_000;
    await connection.client.hset(scene.request.keys.request, 'generation', ahead);
    await loseQueue(scene);
    await queue.reopen(id, ahead);
    expect(await queue.intent(freshName('next'))).toBeGreaterThanOrEqual(ahead);
    expect((await inspect({ ...scene, generation: ahead })).generation).toBe(ahead);
  });
});
