import { parseToken } from '@piecework/protocol';
import { describe, expect, it } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import { given, Hand, popAll, type Scene, tickOnce } from '../support/given.js';
import { inspect, inspectQueue } from '../support/peek.js';

useTestClock();

const minted = ({ id, generation }: Scene, mint: number, priority = 50) => ({
  id,
  generation,
  mint,
  epoch: 1,
  priority,
});

describe('push', () => {
  it('puts tokens behind those that are there, and counts them', async () => {
    const a = await given.created();
    const b = await given.created({ queue: a.queue.keys.queue });
    await a.queue.push(minted(a, 2));
    await a.queue.push(minted(b, 1));
    const { lists, pushed } = await inspectQueue(a);
    expect(lists[50]?.map((token) => parseToken(token).id)).toEqual([a.id, a.id, b.id]);
    expect(parseToken(lists[50]![0]!)).toEqual({
      id: a.id,
      generation: a.generation,
      epoch: '1',
    });
    expect(pushed).toEqual({ 50: 3 });
  });

  it('drops the tokens of another generation', async () => {
    const scene = await given.created();
    const late = { ...minted(scene, 1), generation: scene.generation - 1 };
    expect(await scene.queue.push(late)).toBe('closed');
    expect(await inspectQueue(scene)).toMatchObject({ lists: {}, pushed: {} });
  });
});

describe('exchange', () => {
  it('returns tokens and takes others, the highest priority first', async () => {
    const low = await given.created({ priority: 70 });
    const { queue } = low;
    const high = await given.created({ priority: 3, queue: queue.keys.queue });
    await queue.push(minted(high, 1, 3));
    const taken = await queue.exchange(minted(low, 1, 70), 5);
    expect(taken.map((token) => parseToken(token).id)).toEqual([high.id]);
    expect((await inspectQueue(low)).lists[70]).toHaveLength(1);
  });

  it('takes those of a lower priority when there are no others', async () => {
    const mine = await given.created({ priority: 3 });
    const { queue } = mine;
    const low = await given.created({ priority: 70, queue: queue.keys.queue });
    await queue.push(minted(low, 1, 70));
    expect(await queue.exchange(minted(mine, 0, 3), 5)).toHaveLength(1);
  });

  it('lets equal priorities take turns', async () => {
    const a = await given.created();
    const { queue } = a;
    const b = await given.created({ queue: queue.keys.queue });
    await queue.push(minted(b, 1));
    const turns: string[] = [];
    let holder = a;
    for (let i = 0; i < 4; i += 1) {
      const [token] = await queue.exchange(minted(holder, 1), 1);
      holder = parseToken(token!).id === a.id ? a : b;
      turns.push(holder === a ? 'a' : 'b');
    }
    expect(turns).toEqual(['b', 'a', 'b', 'a']);
  });
});

describe('should-yield', () => {
  it('is what another of the same or a higher priority makes it', async () => {
    const mine = await given.created();
    const { queue, id } = mine;
    expect(await queue.shouldYield(id, 50)).toBe('keep');
    await queue.push(minted(mine, 3));
    expect(await queue.shouldYield(id, 50)).toBe('keep');
    const low = await given.created({ queue: queue.keys.queue });
    await queue.push(minted(low, 1, 51));
    expect(await queue.shouldYield(id, 50)).toBe('keep');
    await queue.push(minted(low, 1, 50));
    expect(await queue.shouldYield(id, 50)).toBe('share');
  });

  it('is also what a higher priority makes it', async () => {
    const mine = await given.created();
    const high = await given.created({ queue: mine.queue.keys.queue });
    await mine.queue.push(minted(high, 1, 0));
    expect(await mine.queue.shouldYield(mine.id, 50)).toBe('leave');
    expect(await mine.queue.shouldYield(mine.id, 0)).toBe('share');
  });

  it('is not what an id makes it that only begins like its own', async () => {
    const mine = await given.created();
    const longer = await given.created({ id: `${mine.id}0`, queue: mine.queue.keys.queue });
    await mine.queue.push(minted(longer, 1));
    expect(await mine.queue.shouldYield(mine.id, 50)).toBe('share');
  });
});

describe('a token', () => {
  it('that was taken for lost and comes after all brings no permit above the limit', async () => {
    const scene = await given.sealed({ items: 5, limit: 1 });
    const [slow] = await popAll(scene);
    let again: string | undefined;
    for (let passed = 0; passed < 60_000 && !again; passed += 3_000) {
      moveClock(3_000);
      await tickOnce(scene);
      [again] = await popAll(scene);
    }
    const epochOf = (token: string | undefined) => [parseToken(token!).epoch];
    expect(epochOf(again)).not.toEqual(epochOf(slow));
    expect((await new Hand(scene, 'slow').enter(1, epochOf(slow))).permits).toBe(1);
    expect((await new Hand(scene, 'other').enter(1, epochOf(again))).permits).toBe(0);
    expect(await inspect(scene)).toMatchObject({ granted: 1, out: 0, outBefore: 0 });
  });
});
