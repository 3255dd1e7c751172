import { describe, expect, it } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import { create, freshName, given, Hand, type Scene, success } from '../support/given.js';

/*
 * Names of lives and the clock: a generation is about the time of its intent, whatever is submitted in
 * a second, and each life of an id has a greater one than the last.
 */

useTestClock();

/** As many intents, of an id each, as fast as the server takes them. Answers how far ahead the last one is. */
async function aheadAfter(count: number, { queue, connection }: Scene, ends: boolean) {
  let last = 0;
  for (let done = 0; done < count; done += 500) {
    const ids = Array.from({ length: 500 }, () => freshName('burst'));
    const generations = await Promise.all(ids.map((id) => queue.intent(id)));
    last = Math.max(last, ...generations);
    if (!ends) continue;
    const finish = (id: string, i: number) => queue.finish(id, generations[i] ?? 0, 'succeeded');
    await Promise.all(ids.map(finish));
  }
  const [seconds] = await connection.client.time();
  return last - Number(seconds) * 1_000;
}

describe('generations', () => {
  it('stay near the clock in a burst of submissions', async () => {
    expect(await aheadAfter(20_000, await given.nothing(), false)).toBeLessThan(3_000);
  });

  it('stay near the clock also when all that is submitted ends at once', async () => {
    expect(await aheadAfter(20_000, await given.nothing(), true)).toBeLessThan(3_000);
  });

  it('are not given to two generations of an id when the clock goes back', async () => {
    const scene = await given.nothing();
    const generations: number[] = [];
    for (let life = 0; life < 5; life += 1) {
      const generation = await scene.queue.intent(scene.id);
      generations.push(generation);
      await scene.queue.finish(scene.id, generation, 'succeeded');
      moveClock(-60_000);
    }
    expect(new Set(generations).size).toBe(5);
    expect([...generations].sort((a, b) => a - b)).toEqual(generations);
  });
});

describe('a generation whose retention is over', () => {
  /** A request with a short retention, completed when the clock has moved by `ms`. */
  async function keptMs(ms: number, aheadMs = 0): Promise<number> {
    const opened = await given.nothing();
    const above = aheadMs > 0 ? Date.now() + aheadMs : 0;
    const scene = { ...opened, generation: await opened.queue.intent(opened.id, above) };
    await create(scene, { retentionMs: 1_000 });
    await scene.request.append(scene.generation, 'maker', 0, ['item']);
    await scene.request.seal(scene.generation, 'maker', 1);
    moveClock(ms);
    const worker = new Hand(scene);
    const [only] = await worker.hold(1);
    await worker.trySettle([success(only!)]);
    return scene.connection.client.pttl(scene.request.keys.work);
  }

  it('goes after two minutes, also when its name is ahead of the clock', async () => {
    expect(await keptMs(0)).toBeGreaterThan(100_000);
    expect(await keptMs(0, 3_600_000)).toBeLessThanOrEqual(121_000);
  });

  it('goes after two minutes, also when the clock went back by an hour', async () => {
    expect(await keptMs(-3_600_000)).toBeLessThanOrEqual(121_000);
  });
});
