import { RedriveCommands } from '@piecework/protocol';
import { describe, expect, it } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import { create, given, Hand, PRODUCER, type Scene, success } from '../support/given.js';
import { inspect, inspectQueue } from '../support/peek.js';

/*
 * A server that lost its last writes, or whose clock went back, gives generations out a second time.
 * The request side then knows a greater one, and says above which the next intent has to be.
 */

useTestClock();

/** The queue side as if nothing had ever been submitted there, an hour ago. */
async function forgets({ queue, connection }: Scene): Promise<void> {
  const { open, agenda, counters } = queue.keys;
  await connection.client.del(open, agenda, counters);
  moveClock(-3_600_000);
}

/** What `create` and `redrive` say of a generation given out again. */
const aboveOf = (reply: { verdict: string; above?: number }): number => {
  expect(reply.verdict).toBe('void');
  return reply.above ?? Number.NaN;
};

describe('an intent above a generation', () => {
  it('gives a greater one, and again the same', async () => {
    const scene = await given.nothing();
    const above = Date.now() + 3_600_000;
    const generation = await scene.queue.intent(scene.id, above);
    expect(generation).toBeGreaterThan(above);
    expect(await scene.queue.intent(scene.id, above)).toBe(generation);
    expect(await scene.queue.intent(scene.id)).toBe(generation);
  });

  it('replaces an open generation that is not above it, and schedules a tend', async () => {
    const scene = await given.opened();
    moveClock(15_000);
    const next = await scene.queue.intent(scene.id, scene.generation);
    expect(next).toBeGreaterThan(scene.generation);
    const { open, agenda } = await inspectQueue(scene);
    expect(open).toEqual({ [scene.id]: next });
    expect(agenda[scene.id]).toBeGreaterThanOrEqual(scene.generation + 35_000);
  });
});

describe('a generation given out a second time', () => {
  it('receives the bound for the next one when the known generation was dropped', async () => {
    const scene = await given.created();
    await scene.request.drop();
    await forgets(scene);
    const again = { ...scene, generation: await scene.queue.intent(scene.id) };
    expect(again.generation).toBeLessThan(scene.generation);
    const above = aboveOf(await create(again));
    const next = { ...scene, generation: await scene.queue.intent(scene.id, above) };
    expect(next.generation).toBeGreaterThan(scene.generation);
    expect(await create(next)).toMatchObject({ verdict: 'created' });
  });

  it('does not replace a generation that the queue side still has open', async () => {
    const scene = await given.created();
    const earlier = { ...scene, generation: scene.generation - 1 };
    const above = aboveOf(await create(earlier));
    expect(await scene.queue.intent(scene.id, above)).toBe(scene.generation);
    expect(await create(scene, { owner: 'another' })).toMatchObject({ verdict: 'exists' });
  });

  it('does not redrive, and the one above does', async () => {
    const scene = await given.sealed({ items: 1, owner: PRODUCER });
    const worker = new Hand(scene);
    const [only] = await worker.hold(1);
    await worker.trySettle([success(only!)]);
    await forgets(scene);
    const redrive = new RedriveCommands(scene.connection, scene.id);
    const again = await scene.queue.intent(scene.id);
    const reply = await redrive.open(again, 'redriver', 30_000);
    const above = aboveOf(reply as { verdict: string });
    const next = await scene.queue.intent(scene.id, above);
    expect(await redrive.open(next, 'redriver', 30_000)).toMatchObject({ verdict: 'opened' });
    expect((await inspect({ ...scene, generation: next })).status).toBe('open');
  });
});
