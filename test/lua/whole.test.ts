/**
 * Requests that are submitted in one call, which needs one server for all keys.
 * @module-tag one-server
 */
import type { QueueCommands } from '@piecework/protocol';
import { describe, expect, it } from 'vitest';
import { loadScripts } from '../interleavings/scripts.js';
import { moveClock, useTestClock } from '../support/clock.js';
import { expand } from '../support/compact.js';
import {
  connected,
  create,
  freshName,
  given,
  Hand,
  items,
  type Options,
  type Scene,
  success,
  tickOnce,
} from '../support/given.js';
import { keysLeft } from '../support/leaks.js';
import { inspect, inspectQueue, snapshot } from '../support/peek.js';
import { bodyOf, headOf, isCompact, submitWhole } from '../support/whole.js';

/*
 * A request that `submit` wrote is the one that the separate calls write: all that Redis holds of both is compared,
 * field by field, at one and the same time of the scripts' clock.
 */

useTestClock();

const NOW = 1_800_000_000_000;
const OWNER = 'maker';

/** Scripts whose clock stands still, at NOW and what a test moves it on by. */
async function clockStands(): Promise<void> {
  const { client } = await connected();
  (await loadScripts(client as Parameters<typeof loadScripts>[0])).use();
  moveClock(NOW);
}

/** The separate calls of a submission; `create` gets all items, or they are appended and the request is sealed then. */
async function byParts(
  nothing: Scene,
  options: Options,
  call: string,
  payloads: readonly string[] = items(options.items ?? 3),
  inCreate = true,
): Promise<number> {
  const { id, queue } = nothing;
  const generation = await queue.intent(id);
  const scene = { ...nothing, generation };
  const more = { call, items: inCreate ? payloads : [] };
  const created = await create(scene, { ...options, owner: OWNER }, more);
  if (created.verdict !== 'created' && created.verdict !== 'sealed')
    throw new Error(`create: ${created.verdict}`);
  const { tendAt } = created;
  // At a time that is over nothing begins: a tend would find nothing to do.
  if (tendAt > NOW) await queue.scheduleTend(id, generation, tendAt);
  const minted = created.verdict === 'sealed' ? created : await appendAndSeal(scene, payloads);
  if (minted.mint > 0) await queue.push({ id, generation, ...minted });
  return generation;
}

async function appendAndSeal({ request, generation }: Scene, payloads: readonly string[]) {
  const appended = await request.append(generation, OWNER, 0, payloads);
  if (appended.verdict !== 'ok') throw new Error(`append: ${appended.verdict}`);
  await request.seal(generation, OWNER, payloads.length);
  return appended;
}

/** All that Redis holds of a scene, with its times, which are whole seconds here. */
async function stateOf(scene: Scene): Promise<Record<string, unknown>> {
  const { client } = scene.connection;
  const state: Record<string, unknown> = { snapshot: await snapshot(scene) };
  for (const key of await keysLeft(scene)) {
    const type = await client.type(key);
    if (type === 'hash') state[key] = await client.hgetall(key);
    else if (type === 'zset')
      state[key] = await client.call('zrange', key, '0', '-1', 'WITHSCORES');
    else if (type === 'stream') {
      const info = (await client.call('xinfo', 'STREAM', key)) as unknown[];
      const groups = await client.call('xinfo', 'GROUPS', key);
      const places = info.map((one, i) => [one, info[i + 1]]).filter((_, i) => i % 2 === 0);
      // How the server stores it, and nothing else, follows from the order of the commands.
      state[key] = [places.filter(([name]) => !String(name).startsWith('radix')), groups];
    }
    // Of the counts it says how long an unused queue is remembered: a week, to a minute.
    state[`${key} goes`] = Math.round((await client.pttl(key)) / 60_000);
  }
  return state;
}

async function remove(scene: Scene): Promise<void> {
  for (const key of await keysLeft(scene)) await scene.connection.client.unlink(key);
}

const MANY: Options = { items: 200, limit: 40, window: 1_000, maxCrashes: 9, attempts: 4 };
interface Case {
  readonly options: Options;
  readonly call?: string;
  readonly payloads?: readonly string[];
}
/** Whether it is compact: it is small, has no RS, and three crashes fail a sub-request. */
const isSmall = ({ options, payloads = items(options.items ?? 3) }: Case) => {
  const { maxCrashes = 3, retentionMs = 200_000 } = options;
  const bytes = Buffer.byteLength(payloads.join(''));
  const isPlain = !payloads.join('').includes('\u001e');
  const isKept = maxCrashes > 2 && retentionMs > 121_000;
  return payloads.length <= 128 && bytes <= 16_384 && isPlain && isKept;
};
/** 16,384 bytes, with `more`. */
const odd = (more: number) => ['ä'.repeat(8_000), '7:x\0', '', 'y'.repeat(380 + more)];
const all: Record<string, Case> = {
  'of one item': { options: { items: 1 } },
  'of many items': { options: MANY },
  'of as many items as are compact': { options: { items: 128 } },
  'of one item more': { options: { items: 129 } },
  'of as long items as are compact': { options: {}, payloads: odd(0) },
  'of enough items for a table': { options: { items: 300, limit: 40 } },
  'of a byte more': { options: {}, payloads: odd(1) },
  'under a new id': { options: {}, call: '' },
  'of a task': { options: { task: 'census ünïcödé \u001e', toleratedFailures: '10%' } },
  'of another task': { options: { task: 'census ünïcödé', toleratedFailures: '10%' } },
  'of items with a separator': { options: {}, payloads: ['"a"', '"\u001e"'] },
  'that two crashes fail': { options: { maxCrashes: 2 } },
  'that more crashes fail': { options: { maxCrashes: 9 } },
  'of the first priority': { options: { priority: 0, limit: 9_007_199_254_740_991 } },
  'that keeps no results': { options: { results: 'discard', retentionMs: 1_000 } },
  'with another lease': { options: { producerLeaseMs: 5_000, onProducerLost: 'cancel' } },
  'with a deadline': { options: { deadlineMs: 5_000, onExceeded: 'cancel' } },
  'with a distant deadline': { options: { deadlineMs: 500_000 } },
  'with a delay': { options: { delayMs: 5_000 } },
  'with a delay and a deadline before it': { options: { delayMs: 9_000, deadlineMs: 4_000 } },
  'with no delay': { options: { delayMs: 0 } },
  'at a time': { options: { runAt: NOW + 7_000 } },
  'at a time that is over': { options: { runAt: NOW - 7_000 } },
  'expedited, at once': { options: { expedite: true, priority: 3 } },
  'expedited, with a delay': { options: { expedite: true, delayMs: 8_000 } },
  'expedited, at a time that is over': { options: { expedite: true, runAt: NOW - 9_000 } },
};

describe('a request that is submitted in one call', () => {
  for (const [which, one] of Object.entries(all)) {
    const { options, call = 'call', payloads } = one;
    it(`is what the separate calls make of it, ${which}`, async () => {
      await clockStands();
      const scene = await given.nothing();
      const generation = await byParts(scene, options, call, payloads, false);
      const expected = await stateOf(scene);
      await remove(scene);
      expect(await byParts(scene, options, call, payloads)).toBe(generation);
      expect(await stateOf(scene)).toEqual(expected);
      await remove(scene);
      expect(await submitWhole(scene, { ...options, owner: OWNER }, call, payloads)).toBe(
        generation,
      );
      expect(await isCompact(scene)).toBe(isSmall(one));
      if (isSmall(one)) await expand(scene.request);
      expect(await stateOf(scene)).toEqual(expected);
    });
  }

  it('is tended when a long delay is over, and not before', async () => {
    await clockStands();
    const scene = await given.nothing();
    await submitWhole(scene, { delayMs: 3_600_000, deadlineMs: 7_200_000 });
    const due = (await inspectQueue(scene)).agenda[scene.id];
    expect(due).toBe(NOW + 3_600_000);
    // The separate calls have it tended once before, which comes to the same time.
    await remove(scene);
    await byParts(scene, { delayMs: 3_600_000, deadlineMs: 7_200_000 }, 'call');
    moveClock(20_000);
    expect(await tickOnce(scene)).toBe(1);
    expect((await inspectQueue(scene)).agenda[scene.id]).toBe(due);
  });

  it('uses the generation of an intent that is there, and leaves its tend where it is', async () => {
    await clockStands();
    const scene = await given.opened();
    moveClock(7_000);
    expect(await submitWhole(scene)).toBe(scene.generation);
    const { open, agenda, counters } = await inspectQueue(scene);
    expect(open).toEqual({ [scene.id]: scene.generation });
    expect(agenda[scene.id]).toBe(NOW + 20_000);
    expect(counters['openedAt']).toBe(NOW);
  });

  it('is one of several that have the same options', async () => {
    const scenes = await Promise.all(Array.from({ length: 5 }, () => given.nothing()));
    const [first] = scenes as [Scene];
    const { queue } = first;
    const head = headOf({}, queue.keys.queue);
    // The second is there, the fourth is the third once more.
    await submitWhole({ ...(scenes[1] as Scene), queue }, {}, 'another');
    const bodies = [0, 1, 2, 2, 4].map((which, i) =>
      bodyOf(scenes[which] as Scene, { items: i + 1 }),
    );
    const before = await inspectQueue(first);
    const generations = await queue.submit(head, bodies);
    expect(generations.map((generation) => generation > 0)).toEqual([
      true,
      false,
      true,
      false,
      true,
    ]);
    for (const [i, scene] of scenes.entries()) {
      const picture = await inspect({ ...scene, queue });
      const total = i === 3 ? undefined : i === 1 ? 3 : i + 1;
      if (total === undefined) expect(picture.status).toBe('none');
      else expect(picture).toMatchObject({ status: 'sealed', counts: { total, ready: total } });
    }
    const { open, lists, pushed, counters } = await inspectQueue(first);
    expect(Object.keys(open)).toHaveLength(4);
    expect(pushed).toEqual({ 50: 4 });
    const ids = [1, 0, 2, 4].map((i) => scenes[i]?.id);
    expect(lists[50]?.map((token) => token.split('~')[0])).toEqual(ids);
    expect(counters['generation']).toBeGreaterThan(before.counters['generation'] as number);
  });

  /**
   * What Redis holds of each of these if it is submitted alone, or all together. The third has been opened before, in
   * `queue`, whose user submits.
   */
  async function statesOf(scenes: readonly Scene[], queue: QueueCommands, together: boolean) {
    const bodies = scenes.map((scene, i) =>
      bodyOf(scene, { items: 1 + (i % 3), owner: `maker ${i}` }, i % 2 === 0 ? '' : `call ${i}`),
    );
    const head = headOf({ task: 'census', window: 7, maxCrashes: 2 }, queue.keys.queue);
    const generations = together
      ? await queue.submit(head, bodies)
      : (await Promise.all(bodies.map((body) => queue.submit(head, [body])))).flat();
    return Promise.all(
      scenes.map(async ({ request, connection: { client } }, i) => {
        const { generation, ...state } = await client.hgetall(request.keys.request);
        expect(Number(generation)).toBe(generations[i]);
        await client.unlink(request.keys.request, request.keys.work);
        return state;
      }),
    );
  }

  /** Six, of which the third has a generation that is older than the others will be. */
  async function several(): Promise<{ scenes: Scene[]; queue: QueueCommands }> {
    await clockStands();
    const opened = await given.opened();
    const { queue } = opened;
    moveClock(7_000);
    const scenes = await Promise.all(Array.from({ length: 5 }, () => given.nothing()));
    return { scenes: scenes.toSpliced(2, 0, opened), queue };
  }

  it('has a state of its own beside others', async () => {
    const { scenes, queue } = await several();
    const alone = await statesOf(scenes, queue, false);
    expect(new Set(alone.map((state) => state['createUntil'])).size).toBe(2);
    for (const order of [scenes, scenes.toReversed()]) {
      expect(await statesOf(order, queue, true)).toEqual(await statesOf(order, queue, false));
    }
  });

  it('is not begun when one beside it cannot be read', async () => {
    const [good, bad] = [await given.nothing(), await given.nothing()];
    await bad.connection.client.sadd(bad.request.keys.request, 'no hash');
    const head = headOf({}, good.queue.keys.queue);
    const submitting = good.queue.submit(head, [bodyOf(good), bodyOf(bad)]);
    await expect(submitting).rejects.toThrow('WRONGTYPE');
    expect(await keysLeft(good)).toEqual([]);
  });

  it('answers a repeat as before, until it has changed', async () => {
    const scene = await given.nothing();
    const generation = await submitWhole(scene);
    expect(await submitWhole(scene)).toBe(generation);
    const { pushed } = await inspectQueue(scene);
    expect(pushed).toEqual({ 50: 1 });
    const live = { ...scene, generation };
    const hand = new Hand(live);
    expect(await submitWhole(scene)).toBe(generation);
    const entries = await hand.hold(3);
    await hand.trySettle(
      entries.map((entry) => success(entry)),
      { keep: 0 },
    );
    expect(await submitWhole(scene)).toBe(0);
    await scene.queue.finish(scene.id, generation, 'succeeded');
    expect(await submitWhole(scene)).toBe(0);
    expect((await inspectQueue(scene)).open).toEqual({});
  });

  it('is left alone by others who submit the same id', async () => {
    const scene = await given.nothing({ id: freshName('crowd') });
    const generation = await submitWhole(scene);
    const before = await stateOf(scene);
    expect(await submitWhole(scene, {}, 'another call')).toBe(0);
    expect(await submitWhole(scene, { owner: 'another' })).toBe(0);
    expect(await submitWhole(scene, { items: 9 }, '')).toBe(0);
    expect(await stateOf(scene)).toEqual(before);
    await expect(byParts(scene, {}, 'by parts')).rejects.toThrow('create: exists');
    const { counts } = await inspect({ ...scene, generation });
    expect(counts).toMatchObject({ total: 3 });
  });
});
