/**
 * Requests that are submitted in one call, which needs one server for all keys.
 * @module-tag one-server
 */
import { describe, expect, it } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import { given, Hand, items, type Scene, success } from '../support/given.js';
import { inspect, peek } from '../support/peek.js';
import { isCompact, submitWhole } from '../support/whole.js';

/*
 * Which requests of more than 32 sub-requests are compact (lua/lib/wholes.lua).
 */

useTestClock();

const LARGE = 100;

/** Submits a large request into a queue of its own, or that of another. */
async function large({
  of,
  n = LARGE,
  probes = false,
  payloads,
}: {
  readonly of?: Scene;
  readonly n?: number;
  readonly probes?: boolean;
  readonly payloads?: readonly string[];
} = {}): Promise<Scene> {
  const scene = await given.nothing(of ? { queue: of.queue.keys.queue } : {});
  const options = { items: n, limit: n };
  const generation = await submitWhole(scene, options, 'call', payloads, probes);
  return { ...scene, generation };
}

/** One worker reads and settles all of it. */
async function runWhole(scene: Scene, n = LARGE): Promise<void> {
  const hand = new Hand(scene);
  const entries = await hand.holdAtOnce(n);
  expect(entries.map(({ payload }) => payload)).toEqual(items(n));
  const outcomes = entries.map((entry) => success(entry, `${entry.index}`));
  const { request, queue, generation } = scene;
  const end = await request.settleCompact(queue, generation, hand.name, hand.grantNo, outcomes);
  expect(end).toBe('complete');
}

describe('a request of more than 32 sub-requests', () => {
  it('has a stream as long as no worker has read one as a whole', async () => {
    const scene = await large();
    expect(await isCompact(scene)).toBe(false);
    expect(await scene.connection.client.type(scene.request.keys.work)).toBe('stream');
  });

  it('is compact once one was read and settled as a whole, for a minute', async () => {
    const first = await large({ probes: true });
    expect(await isCompact(first)).toBe(true);
    expect(await isCompact(await large({ of: first }))).toBe(false);
    await runWhole(first);
    expect((await peek(first)).results).toHaveLength(LARGE);
    const next = await large({ of: first });
    expect(await isCompact(next)).toBe(true);
    moveClock(61_000);
    expect(await isCompact(await large({ of: first }))).toBe(false);
    await runWhole(next);
    expect(await isCompact(await large({ of: first }))).toBe(true);
    // The clock went back.
    moveClock(-3_600_000);
    expect(await isCompact(await large({ of: first }))).toBe(false);
  });

  it('is none of these where small ones are', async () => {
    const small = await large({ n: 32 });
    expect(await isCompact(small)).toBe(true);
    await runWhole(small, 32);
    expect(await isCompact(await large({ of: small }))).toBe(false);
  });

  it('may have 128 sub-requests of 16,384 bytes together', async () => {
    const long = (more: number) => [...items(3), 'x'.repeat(16_384 - 3 * 6 + more)];
    expect(await isCompact(await large({ n: 128, probes: true }))).toBe(true);
    expect(await isCompact(await large({ n: 129, probes: true }))).toBe(false);
    expect(await isCompact(await large({ probes: true, payloads: long(0) }))).toBe(true);
    expect(await isCompact(await large({ probes: true, payloads: long(1) }))).toBe(false);
  });

  it('becomes a stream when a worker reads a part of it', async () => {
    const scene = await large({ probes: true });
    const hand = new Hand(scene);
    const [first] = await hand.hold(1);
    expect(first).toMatchObject({ index: 0, payload: 'item 0' });
    expect(await scene.connection.client.type(scene.request.keys.work)).toBe('stream');
    expect(await inspect(scene)).toMatchObject({
      counts: { ready: LARGE - 1, inFlight: 1 },
      granted: 1,
    });
    await hand.settle([success(first as NonNullable<typeof first>, '0')]);
    expect((await peek(scene)).results.map(({ index }) => index)).toEqual([0]);
  });
});
