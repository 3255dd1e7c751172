import { Agenda, ControlCommands, parseToken, QueueCommands } from '@piecework/protocol';
import { RequestCommands } from '@piecework/protocol/testing';
import { describe, expect, it } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import {
  connected,
  freshName,
  given,
  Hand,
  holds,
  type Options,
  popAll,
  type Scene,
  success,
  tickOnce,
} from '../support/given.js';
import { keysLeft } from '../support/leaks.js';
import { inspect, inspectQueue } from '../support/peek.js';
import { completeWithFailures, openedAgain, runAgain } from '../support/redriven.js';
import { until } from '../support/until.js';

useTestClock();

/** So many requests, one queue, and what the tests call them by. */
async function requests<K extends string>(
  of: Record<K, Options>,
): Promise<Record<K, Scene> & { names: (tokens: readonly string[]) => string[] }> {
  const queue = freshName('queue');
  const scenes = {} as Record<K, Scene>;
  const known = new Map<string, string>();
  let shared: QueueCommands | undefined;
  for (const name of Object.keys(of) as K[]) {
    const scene = await given.sealed({ items: 4, limit: 4, ...of[name], queue });
    shared ??= scene.queue;
    scenes[name] = { ...scene, queue: shared };
    known.set(scene.id, name);
  }
  const names = (tokens: readonly string[]) =>
    tokens.map((token) => known.get(parseToken(token).id) ?? '?');
  return { ...scenes, names };
}

const late = (delayMs: number, more: Options = {}): Options => ({
  delayMs,
  expedite: true,
  ...more,
});
/** Due since then: its tokens go to the lane as soon as it is filled. */
const since = (runAt: number, more: Options = {}): Options => ({ runAt, expedite: true, ...more });

/** Has all delayed ones tended by the tick that follows when all are due. */
async function letAllComeDue(scenes: readonly Scene[], ms: number): Promise<void> {
  for (const { queue, id, generation } of scenes)
    await queue.scheduleTend(id, generation, generation + 1);
  moveClock(ms);
  expect(await tickOnce(scenes[0]!)).toBe(scenes.length);
}

/** Lets time pass, and ticks. */
async function pass(scene: Scene, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 3_000) {
    moveClock(3_000);
    await tickOnce(scene);
  }
}

const minted = ({ id, generation }: Scene, due: number, mint = 1, epoch = 1) => ({
  ...{ id, generation, mint, epoch, due },
  priority: 50,
});

describe('an expedited request that is due', () => {
  it('goes before the undelayed ones of its priority, and behind those of a higher one', async () => {
    const { plain, delayed, high, low, names } = await requests({
      plain: {},
      delayed: late(9_000),
      high: { priority: 49 },
      low: late(1_000, { priority: 51 }),
    });
    expect(names(await popAll(plain))).toEqual(['high', 'plain']);
    for (const [scene, priority] of [[plain, 50] as const, [high, 49] as const]) {
      const { id, generation } = scene;
      await plain.queue.push({ id, generation, mint: 1, epoch: 1, priority });
    }
    await letAllComeDue([delayed, low], 10_000);
    expect(names(await popAll(plain))).toEqual(['high', 'delayed', 'plain', 'low']);
  });

  it('has nothing in its lane before', async () => {
    const { delayed } = await requests({ delayed: late(9_000) });
    expect(await popAll(delayed)).toEqual([]);
    moveClock(8_000);
    await tickOnce(delayed);
    expect((await inspectQueue(delayed)).lanes).toEqual({});
  });

  it('is served in due order when several are due at one tend', async () => {
    const { a, b, c, names } = await requests({
      a: late(9_000),
      b: late(5_000),
      c: late(7_000),
    });
    await letAllComeDue([a, b, c], 10_000);
    expect(names(await popAll(a))).toEqual(['b', 'c', 'a']);
  });

  it('is pushed in due order by who finds several due', async () => {
    const { a, b, c, plain, names } = await requests({
      a: late(9_000),
      b: late(5_000),
      c: late(7_000),
      plain: { delayMs: 8_000 },
    });
    // A worker that waits takes what is pushed first, so the order of the calls counts.
    const written: string[] = [];
    class Watched extends QueueCommands {
      override writeBack(...args: Parameters<QueueCommands['writeBack']>) {
        written.push(`${args[0].id}~`);
        return super.writeBack(...args);
      }
    }
    const due = [a, b, c, plain];
    for (const { queue, id, generation } of due)
      await queue.scheduleTend(id, generation, generation + 1);
    moveClock(10_000);
    const queue = new Watched(a.connection, a.queue.keys.queue);
    await new Agenda(a.connection, queue).tick();
    expect(names(written).filter((name) => name !== 'plain')).toEqual(['b', 'c', 'a']);
    expect(names(await popAll({ ...a, queue }))).toEqual(['b', 'c', 'a', 'plain']);
  });

  it('goes in the order of creation where the due times are equal', async () => {
    const { a, names } = await requests({ a: since(7), b: since(7), c: since(7) });
    expect(names(await popAll(a))).toEqual(['a', 'b', 'c']);
  });

  it('has its place in due order in whatever order its tokens come', async () => {
    const dues = [4, 1, 3, 9, 1, 7, 2, 8, 9, 5];
    const scenes = await requests(
      Object.fromEntries(dues.map((due, i) => [`r${i}`, since(due)] as const)),
    );
    const all = dues.map((due, i) => ({
      due,
      scene: scenes[`r${i}` as 'names'] as never as Scene,
    }));
    const { queue } = all[0]!.scene;
    await popAll(all[0]!.scene);
    let seed = 7;
    const pushed: number[] = [];
    for (let i = 0; i < 60; i += 1) {
      seed = (seed * 48_271) % 2_147_483_647;
      const { due, scene } = all[seed % all.length]!;
      const mint = 1 + (seed % 3);
      pushed.push(...Array<number>(mint).fill(due));
      await queue.push(minted(scene, due, mint, 1 + (i % 2)));
    }
    const { lanes } = await inspectQueue(all[0]!.scene);
    const places = lanes[50]!.map((token) => token.split('~'));
    expect(places.map(([, , , due]) => Number(due))).toEqual(pushed.sort((a, b) => a - b));
    const keys = places.map(([, generation, , due]) => `${due}~${generation}`);
    expect(keys).toEqual([...keys].sort());
  });

  it('keeps its place when its tokens come back', async () => {
    const { first, plain, names } = await requests({
      first: since(5),
      later: since(6),
      plain: {},
    });
    await popAll(plain);
    await plain.queue.push(minted(plain, 0));
    await plain.queue.push(minted(first, 5));
    const taken = await plain.queue.exchange(minted(first, 5, 0), 1);
    expect(names(taken)).toEqual(['first']);
    const { mint, epoch, priority, due } = await new Hand(first).enter(1);
    expect({ mint, priority, due }).toEqual({ mint: 1, priority: 50, due: 5 });
    const { id, generation } = first;
    await plain.queue.push({ id, generation, mint, epoch, priority, due });
    expect(names(await popAll(plain))).toEqual(['first', 'plain']);
  });

  it('keeps its place when it is held back in between', async () => {
    const { a, b, names } = await requests({ a: since(5), b: since(6) });
    await popAll(a);
    await holds(a).hold(a.generation, 9_000);
    moveClock(9_100);
    await pass(a, 60_000);
    expect(names(await popAll(b))).toEqual(['a', 'b']);
  });

  it('has a lane of its new priority when that is changed', async () => {
    const { a, b, names } = await requests({ a: since(5, { priority: 60 }), b: since(9) });
    const control = new ControlCommands(a.connection, a.id);
    const updated = await control.update(a.generation, { priority: 50 });
    expect(updated).toMatchObject({ verdict: 'ok', mint: 1, priority: 50, due: 5 });
    const { id, generation } = a;
    await a.queue.push({
      id,
      generation,
      ...(updated as { mint: 1; epoch: 3; priority: 50; due: 5 }),
    });
    const tokens = await popAll(b);
    expect(names(tokens)).toEqual(['a', 'b', 'a']);
    const [fresh, , old] = tokens.map((token) => [parseToken(token).epoch]);
    expect(await new Hand(a, 'one').enter(1, old)).toMatchObject({ permits: 0 });
    expect(await new Hand(a, 'two').enter(1, fresh)).toMatchObject({ permits: 1 });
  });

  it('is no other than any when it is redriven', async () => {
    const before = await completeWithFailures([1, 2], since(5));
    const scene = await openedAgain(before);
    await runAgain(scene, [1, 2]);
    const { lists, lanes } = await inspectQueue(scene);
    expect([lists[50]?.length, lanes]).toEqual([1, {}]);
  });
});

describe('a worker at the end of its time slice', () => {
  it('leaves an undelayed request for one in the lane of its priority', async () => {
    const { plain, due } = await requests({ plain: {}, due: since(5) });
    await popAll(plain);
    const contended = () => plain.queue.shouldYield(plain.id, 50);
    expect(await contended()).toBe('keep');
    await plain.queue.push(minted(due, 5));
    expect(await contended()).toBe('leave');
    expect(await plain.queue.shouldYield(plain.id, 49)).toBe('keep');
  });

  it('leaves one that is expedited only for what was due before, or is of a higher priority', async () => {
    const { mine, before, after, plain, high } = await requests({
      mine: since(5),
      before: since(4),
      after: since(6),
      plain: {},
      high: { priority: 9 },
    });
    await popAll(plain);
    const { queue, id, generation } = mine;
    const contended = () => queue.shouldYield(id, 50, { due: 5, generation });
    await queue.push(minted(plain, 0));
    await queue.push(minted(after, 6));
    await queue.push(minted(mine, 5));
    expect(await contended()).toBe('keep');
    await queue.push(minted(before, 4));
    expect(await contended()).toBe('leave');
    await popAll(mine);
    expect(await contended()).toBe('keep');
    await queue.push({ ...minted(high, 0), priority: 9 });
    expect(await contended()).toBe('leave');
  });

  it('makes way among those due at one time only for an older one', async () => {
    const { a, b } = await requests({ a: since(5), b: since(5) });
    await popAll(a);
    const contended = (scene: Scene) =>
      a.queue.shouldYield(scene.id, 50, { due: 5, generation: scene.generation });
    await a.queue.push(minted(b, 5));
    expect(await contended(a)).toBe('keep');
    await popAll(a);
    await a.queue.push(minted(a, 5));
    expect(await contended(b)).toBe('leave');
  });
});

describe('tokens in a lane', () => {
  it('that were eaten are found lost, and minted into the lane again', async () => {
    const { first, later, plain, names } = await requests({
      first: since(5),
      later: since(6),
      plain: {},
    });
    const eaten = await first.queue.exchange(minted(first, 5, 0), 1);
    expect(names(eaten)).toEqual(['first']);
    await pass(first, 60_000);
    expect(names(await popAll(plain))).toEqual(['first', 'later', 'plain']);
    await inspect(later);
  });

  it('that were eaten behind others are found when those have gone', async () => {
    const { first, names } = await requests({ first: since(5), later: since(6) });
    const [kept] = await popAll(first);
    await first.queue.push(minted(first, 5));
    await pass(first, 60_000);
    // What waits goes first in any case; nothing could be given to the later one.
    expect(names(await popAll(first))).toEqual(['first']);
    expect(names([kept!])).toEqual(['first']);
    await new Hand(first).enter(4);
    await pass(first, 60_000);
    expect(names(await popAll(first))).toContain('later');
  });

  it('that stand behind their turn in a long lane are replaced at its front', async () => {
    const { first, later, names } = await requests({ first: since(5), later: since(6) });
    const [early, late] = await popAll(first);
    const lane = first.queue.keys.lane(50);
    await first.connection.client.lpush(lane, late!, early!);
    await pass(first, 60_000);
    const tokens = await popAll(first);
    expect(names(tokens)).toEqual(['first', 'later', 'first']);
    const epochs = tokens.map((token) => parseToken(token).epoch);
    const hand = new Hand(first);
    await hand.enter(1, [epochs[0]!]);
    await hand.enter(0, [epochs[2]!]);
    await inspect(first);
    await inspect(later);
  });

  it('do not become more while nobody takes them', async () => {
    const { first, names } = await requests({
      first: since(5),
      second: since(6),
      equal: since(6),
    });
    await pass(first, 400_000);
    expect(names(await popAll(first))).toEqual(['first', 'second', 'equal']);
  });

  it('that were minted and never pushed are minted again', async () => {
    const { delayed, names } = await requests({ delayed: late(9_000) });
    moveClock(21_000);
    const { claims } = await delayed.queue.tick('', '');
    const tended = await delayed.request.tend(delayed.generation, claims[0]!.passed);
    expect(tended).toMatchObject({ mint: 1, priority: 50 });
    await pass(delayed, 60_000);
    const tokens = await popAll(delayed);
    expect(names(tokens)).toEqual(['delayed']);
    expect(await new Hand(delayed).enter(4, [parseToken(tokens[0]!).epoch])).toMatchObject({
      permits: 4,
    });
  });

  it('that were pushed twice bring no permit above the limit', async () => {
    const { delayed, names } = await requests({ delayed: since(5, { limit: 1 }) });
    await delayed.queue.push(minted(delayed, 5));
    const tokens = await popAll(delayed);
    expect(names(tokens)).toEqual(['delayed', 'delayed']);
    expect(await new Hand(delayed, 'one').enter(1)).toMatchObject({ permits: 1 });
    expect(await new Hand(delayed, 'two').enter(1)).toMatchObject({ permits: 0 });
    await inspect(delayed);
  });

  it('of another generation are dropped', async () => {
    const { delayed } = await requests({ delayed: since(5) });
    await popAll(delayed);
    const stale = { ...minted(delayed, 5), generation: delayed.generation - 1 };
    expect(await delayed.queue.push(stale)).toBe('closed');
    expect((await inspectQueue(delayed)).lanes).toEqual({ 50: [] });
  });
});

describe('that a lane is used', () => {
  it('is published to the workers with its first token, once', async () => {
    const connection = await connected();
    const { plain } = await requests({ plain: {} });
    const { queue, id, generation } = plain;
    const { client: listener } = await connection.openFor(queue.keys.open, {});
    const heard: string[] = [];
    listener.on('smessage', (_channel: string, message: string) => heard.push(message));
    try {
      await listener.ssubscribe(queue.keys.control);
      await queue.push(minted(plain, 5));
      await queue.push(minted(plain, 6));
      await queue.push({ id, generation, mint: 1, epoch: 1, priority: 7, due: 5 });
      await until(() => heard.length >= 2);
      expect(heard).toEqual(['lane 50', 'lane 7']);
    } finally {
      listener.disconnect();
    }
  });

  it('is learnt at the next tick by who did not hear it', async () => {
    const { due } = await requests({ due: since(5) });
    const other = new QueueCommands(due.connection, due.queue.keys.queue);
    expect(other.lanes.lists).toHaveLength(100);
    let told = 0;
    other.lanes.onNew(() => {
      told += 1;
    });
    await other.tick('', '');
    await other.tick('', '');
    expect(told).toBe(1);
    expect(other.lanes.lists).toHaveLength(101);
    const at = other.lanes.lists.indexOf(other.keys.lane(50));
    expect(other.lanes.lists.slice(at - 1, at + 2)).toEqual([
      other.keys.list(49),
      other.keys.lane(50),
      other.keys.list(50),
    ]);
  });

  it('costs a queue nothing that has none', async () => {
    const { plain } = await requests({ plain: {}, delayed: { runAt: 5 } });
    await tickOnce(plain);
    expect(plain.queue.lanes.lists).toBe(plain.queue.keys.lists);
  });

  it('shows in what the queue counts', async () => {
    const { due } = await requests({ due: since(5), plain: {}, other: since(6, { priority: 3 }) });
    expect((await due.queue.counts()).tokens).toEqual({ 3: 1, 50: 2 });
  });
});

describe('when nothing is open any more, lanes are cleared away', () => {
  async function over(): Promise<Scene> {
    const { due } = await requests({ due: since(5, { items: 1 }) });
    await due.queue.push(minted(due, 5, 3));
    const hand = new Hand(due);
    const [only] = await hand.hold(1);
    await hand.trySettle([success(only!)]);
    return due;
  }
  const left = async (scene: Scene) =>
    (await keysLeft(scene)).filter((key) => key.startsWith(`{${scene.queue.keys.queue}}`));
  const ofQueue = ({ queue }: Scene) => [queue.keys.counters, queue.keys.history].sort();

  it('by a finish in a process that knew of none', async () => {
    const scene = await over();
    const other = new QueueCommands(scene.connection, scene.queue.keys.queue);
    await other.finish(scene.id, scene.generation, 'succeeded');
    expect((await left(scene)).sort()).toEqual(ofQueue(scene));
  });

  it('by the next caller, when the first was cut off half-way', async () => {
    const scene = await over();
    const { keys } = scene.queue;
    const { client } = scene.connection;
    // What the first of its two calls leaves.
    const half = new QueueCommands(scene.connection, keys.queue);
    await client.hset(keys.pushed, 'lanes', '50,51');
    await client.hdel(keys.open, scene.id);
    expect(await left(scene)).toContain(keys.lane(50));
    await half.deregister('nobody');
    expect(
      (await left(scene)).filter((key) => key.includes(':50:') || key === keys.pushed),
    ).toEqual([]);
  });

  it('but not while another request is open', async () => {
    const scene = await over();
    const next = await given.sealed({ ...since(9), queue: scene.queue.keys.queue });
    await scene.queue.finish(scene.id, scene.generation, 'succeeded');
    expect((await inspectQueue(next)).lanes[50]?.at(-1)).toContain(next.id);
    expect(await new RequestCommands(next.connection, next.id).state()).toMatchObject({
      status: 'sealed',
    });
  });
});
