import { describe, expect, it } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import { given, Hand, popAll, success, tickOnce } from '../support/given.js';
import { inspect, inspectQueue } from '../support/peek.js';

useTestClock();

const quiet = { mint: 0, epoch: 1, priority: 50, before: '', next: 0, parked: '' };

describe('tick', () => {
  it('claims what is due, once, and again when the claimer died', async () => {
    const scene = await given.opened();
    expect((await scene.queue.tick('', '')).claims).toEqual([]);
    moveClock(20_001);
    const { claims, now, next } = await scene.queue.tick('', '');
    expect(claims).toEqual([
      { id: scene.id, generation: scene.generation, passed: '', claim: now + 8_000.5 },
    ]);
    expect(next).toBe(now + 8_000);
    expect((await scene.queue.tick('', '')).claims).toEqual([]);
    // A claim ends half a millisecond later, and all of this may happen within one.
    moveClock(8_001);
    expect((await scene.queue.tick('', '')).claims).toHaveLength(1);
  });

  it('claims no more than fifty at once', async () => {
    const first = await given.opened();
    const { queue } = first;
    for (let i = 0; i < 69; i += 1) await queue.intent(`${first.id}-${i}`);
    moveClock(20_100);
    expect((await queue.tick('', '')).claims).toHaveLength(50);
    expect((await queue.tick('', '')).claims).toHaveLength(20);
  });

  it('tells the time of the next entry, or that there is none', async () => {
    const scene = await given.nothing();
    expect((await scene.queue.tick('', '')).next).toBe(-1);
    const generation = await scene.queue.intent(scene.id);
    expect((await scene.queue.tick('', '')).next).toBeGreaterThanOrEqual(generation + 20_000);
  });

  it('keeps the registry of workers, and strikes out who is silent for a minute', async () => {
    const scene = await given.nothing();
    expect((await scene.queue.tick('a', '{"tasks":"*"}')).fleet).toBe(1);
    moveClock(30_000);
    expect((await scene.queue.tick('b', '{"tasks":"*"}')).fleet).toBe(2);
    moveClock(30_001);
    expect((await scene.queue.tick('', '')).fleet).toBe(1);
    const { workers, workerInfo } = await inspectQueue(scene);
    expect(Object.keys(workers)).toEqual(['b']);
    expect(workerInfo).toEqual({ b: '{"tasks":"*"}' });
  });

  it('notices that Redis was away, by the gap between two ticks, which a big fleet may have', async () => {
    const { queue } = await given.opened();
    const gap = async (ms: number) => {
      moveClock(ms);
      const { resumedAt, now } = await queue.tick('', '');
      return { resumedAt, now };
    };
    expect((await gap(0)).resumedAt).toBe(0);
    expect((await gap(14_000)).resumedAt).toBe(0);
    const first = await gap(16_000);
    expect(first.resumedAt).toBe(first.now);
    expect((await gap(1_000)).resumedAt).toBe(first.now);
    const second = await gap(16_000);
    expect(second.resumedAt).toBe(second.now);
    for (let i = 0; i < 100; i += 1) await queue.tick(`worker ${i}`, '{}');
    expect((await gap(18_000)).resumedAt).toBe(second.now);
  });

  it('takes the silence of processes that rest for no outage, unless one that does not rest ticked lately', async () => {
    const { queue } = await given.sealed({ items: 1 });
    const after = async (ms: number, rests: boolean) => {
      moveClock(ms);
      const { resumedAt, now } = await queue.tick('', '', '', rests);
      return resumedAt === now;
    };
    const rest = () => after(50_000, true);
    expect(await after(0, true)).toBe(false);
    // The first id was opened just before.
    expect(await rest()).toBe(true);
    for (let i = 0; i < 4; i += 1) expect(await rest()).toBe(false);
    expect(await after(61_000, true)).toBe(true);
    expect(await rest()).toBe(false);
    for (let i = 0; i < 20; i += 1) {
      expect(await after(1_000, true)).toBe(false);
      expect(await after(4_000, false)).toBe(false);
    }
    expect(await after(1_000, true)).toBe(false);
    expect(await after(16_000, false)).toBe(true);
    expect(await after(1_000, false)).toBe(false);
    expect(await rest()).toBe(true);
    expect(await rest()).toBe(false);
  });

  it('wakes a request when its list has been popped up to its mark, whatever comes behind', async () => {
    const scene = await given.sealed({ items: 2, limit: 2 });
    const { id, queue } = scene;
    moveClock(20_100);
    await tickOnce(scene);
    expect(await inspectQueue(scene)).toMatchObject({
      wait: { [id]: { priority: 50, mark: 1 } },
      agenda: {},
      marks: { [id]: '1' },
    });
    await given.filled({ items: 3, queue: queue.keys.queue });
    const nobody = { id, generation: 1, mint: 0, epoch: 1, priority: 50 };
    await queue.tick('', '');
    expect((await inspectQueue(scene)).wait).toHaveProperty(id);
    await queue.exchange(nobody, 1);
    const { now } = await queue.tick('', '');
    const woken = await inspectQueue(scene);
    expect(woken.wait).toEqual({});
    expect(woken.marks).toEqual({ [id]: `1:${now}` });
    expect(woken.agenda[id]).toBe(now + 5_000);
  });

  it('says that an epoch has passed a grace after its last token was popped', async () => {
    const scene = await given.sealed({ items: 2, limit: 2 });
    const { id, queue, request, generation } = scene;
    moveClock(20_100);
    await tickOnce(scene);
    await popAll(scene);
    await queue.tick('', '');
    await queue.scheduleTend(id, generation, 0);
    const [early] = (await queue.tick('', '')).claims;
    expect(early).toMatchObject({ id, passed: '' });
    await queue.writeBack(early!, (await request.tend(generation, '')) as never);
    moveClock(5_001);
    const [late] = (await queue.tick('', '')).claims;
    expect(late).toMatchObject({ id, passed: '1' });
    expect(await request.tend(generation, '1')).toMatchObject({ mint: 1, before: '' });
  });

  it('keeps the marks of different priorities apart', async () => {
    const high = await given.sealed({ items: 1, priority: 0 });
    const queue = high.queue.keys.queue;
    const low = await given.sealed({ items: 1, priority: 99, queue });
    moveClock(20_100);
    await tickOnce(high);
    expect((await inspectQueue(high)).wait).toEqual({
      [high.id]: { priority: 0, mark: 1 },
      [low.id]: { priority: 99, mark: 1 },
    });
    await high.queue.exchange({ id: low.id, generation: 1, mint: 0, epoch: 1, priority: 99 }, 1);
    await high.queue.tick('', '');
    expect(Object.keys((await inspectQueue(high)).wait)).toEqual([low.id]);
  });

  it('forgets an id that is not open', async () => {
    const scene = await given.opened();
    const { agenda } = scene.queue.keys;
    await scene.connection.client.zadd(agenda, 1, 'stranger');
    expect((await scene.queue.tick('', '')).claims).toEqual([]);
    expect(Object.keys((await inspectQueue(scene)).agenda)).toEqual([scene.id]);
  });

  it('tells who asks for it who is parked', async () => {
    const scene = await given.created({ task: 'census' });
    const { id, generation, queue } = scene;
    await queue.park(id, generation, 'census');
    expect((await queue.tick('', '', '*')).parked).toEqual([{ id, generation, task: 'census' }]);
    await queue.park(id, generation, '');
    expect((await queue.tick('', '', '*')).parked).toEqual([{ id, generation, task: '' }]);
  });
});

describe('write-back', () => {
  const claimed = async (options = {}) => {
    const scene = await given.sealed({ items: 2, limit: 1, ...options });
    moveClock(20_100);
    const { claims, now } = await scene.queue.tick('', '');
    return { scene, claim: claims[0]!, now };
  };

  it('puts a request to sleep until the time that the tend named', async () => {
    const { scene, claim, now } = await claimed();
    await scene.queue.writeBack(claim, { ...quiet, next: now + 15_000 });
    expect(await inspectQueue(scene)).toMatchObject({
      agenda: { [scene.id]: now + 15_000 },
      wait: {},
    });
  });

  it('lets a request that only waits for its tokens cost nothing', async () => {
    const { scene, claim } = await claimed();
    await scene.queue.writeBack(claim, { ...quiet, before: '1' });
    const { agenda, wait } = await inspectQueue(scene);
    expect(agenda).toEqual({});
    expect(wait).toEqual({ [scene.id]: { priority: 50, mark: 1 } });
  });

  it('tends a request that seems to need nothing once a minute', async () => {
    const { scene, claim, now } = await claimed();
    await scene.queue.writeBack(claim, quiet);
    expect((await inspectQueue(scene)).agenda[scene.id]).toBeGreaterThanOrEqual(now + 60_000);
  });

  it('sets the mark behind what it pushes', async () => {
    const { scene, claim } = await claimed();
    await scene.queue.writeBack(claim, { ...quiet, mint: 3, epoch: 2, before: '1' });
    const { wait, lists } = await inspectQueue(scene);
    expect(wait[scene.id]).toMatchObject({ mark: 4 });
    expect(lists[50]).toHaveLength(4);
  });

  it('does not move a mark that watches over the same epoch', async () => {
    const { scene, claim } = await claimed();
    await scene.queue.writeBack(claim, { ...quiet, before: '1' });
    await scene.queue.push({ ...claim, mint: 5, epoch: 2, priority: 50 });
    await scene.queue.scheduleTend(scene.id, scene.generation, 0);
    const [again] = (await scene.queue.tick('', '')).claims;
    await scene.queue.writeBack(again!, { ...quiet, before: '1' });
    expect((await inspectQueue(scene)).wait[scene.id]).toMatchObject({ mark: 1 });
  });

  it('leaves an earlier time alone that came in between', async () => {
    const { scene, claim, now } = await claimed();
    await scene.queue.scheduleTend(scene.id, scene.generation, now + 100);
    expect(await scene.queue.writeBack(claim, { ...quiet, next: now + 9_000 })).toBe('moved');
    expect((await inspectQueue(scene)).agenda[scene.id]).toBe(now + 100);
  });

  it('leaves alone that a time behind the claim was noted in between', async () => {
    const { scene, claim, now } = await claimed();
    await scene.queue.scheduleTend(scene.id, scene.generation, now + 60_000);
    expect(await scene.queue.writeBack(claim, { ...quiet, next: now + 900_000 })).toBe('moved');
    expect((await inspectQueue(scene)).agenda[scene.id]).toBe(now + 8_000);
  });

  it('drops the tokens of a request that is not open any more', async () => {
    const { scene, claim } = await claimed();
    const other = await given.opened({ queue: scene.queue.keys.queue });
    await scene.queue.finish(scene.id, scene.generation, 'cancelled');
    expect(await scene.queue.writeBack(claim, { ...quiet, mint: 1 })).toBe('closed');
    const { open, pushed } = await inspectQueue(other);
    expect(Object.keys(open)).toEqual([other.id]);
    expect(pushed).toEqual({ 50: 1 });
  });

  it('notes and strikes out that the request is parked', async () => {
    const { scene, claim } = await claimed();
    await scene.queue.writeBack(claim, { ...quiet, parked: '+' });
    expect((await inspectQueue(scene)).parked).toEqual({ [scene.id]: `${scene.generation} ` });
    await scene.queue.scheduleTend(scene.id, scene.generation, 0);
    const [again] = (await scene.queue.tick('', '')).claims;
    await scene.queue.writeBack(again!, quiet);
    expect((await inspectQueue(scene)).parked).toEqual({});
  });
});

describe('schedule-tend', () => {
  it('brings the next tend forward, and never postpones it', async () => {
    const scene = await given.opened();
    const { id, generation, queue } = scene;
    await queue.scheduleTend(id, generation, generation + 1_000);
    expect((await inspectQueue(scene)).agenda[id]).toBe(generation + 1_000);
    await queue.scheduleTend(id, generation, generation + 9_000);
    expect((await inspectQueue(scene)).agenda[id]).toBe(generation + 1_000);
    await queue.scheduleTend(id, generation, 0);
    expect((await queue.tick('', '')).claims).toHaveLength(1);
  });

  it('does nothing for another generation', async () => {
    const scene = await given.opened();
    const before = await inspectQueue(scene);
    await scene.queue.scheduleTend(scene.id, scene.generation - 1, 0);
    await scene.queue.park(scene.id, scene.generation - 1, 'census');
    expect(await inspectQueue(scene)).toEqual(before);
  });
});

describe('an announced change', () => {
  it('takes no place of a claim, and the end of its request ends it', async () => {
    const scene = await given.opened();
    const { queue } = scene;
    const names = Array.from({ length: 60 }, (_, i) => `${scene.id}-${i}`);
    const open = await Promise.all(
      names.map(async (id) => ({ id, generation: await queue.intent(id) })),
    );
    for (const { id, generation } of open) await queue.scheduleTend(id, generation, 0, 1);
    moveClock(2);
    expect((await queue.tick('', '')).claims).toHaveLength(50);
    expect((await queue.tick('', '')).claims).toHaveLength(10);
    for (const { id, generation } of open) {
      await queue.scheduleTend(id, generation, 0, 60_000);
      await queue.finish(id, generation, 'gone');
    }
    expect(Object.keys((await inspectQueue(scene)).agenda)).toEqual([scene.id]);
  });
});

describe('a request that waits', () => {
  it('is not tended for hours, however often the agenda ticks', async () => {
    const scene = await given.sealed({ items: 20, limit: 10 });
    moveClock(20_100);
    await tickOnce(scene);
    let claims = 0;
    for (let i = 0; i < 60; i += 1) {
      moveClock(60_000);
      claims += await tickOnce(scene);
    }
    expect(claims).toBe(0);
    expect((await inspectQueue(scene)).lists[50]).toHaveLength(1);
  });

  it('misses one token of ten while nine workers stay busy', async () => {
    const scene = await given.sealed({ items: 20, limit: 10 });
    await popAll(scene);
    const busy = Array.from({ length: 9 }, (_, i) => new Hand(scene, `w${i}`));
    for (const worker of busy) await worker.hold(1);
    let passed = 0;
    for (let tokens = 0; tokens === 0 && passed < 120_000; passed += 1_000) {
      moveClock(1_000);
      if (passed % 9_000 === 0) for (const worker of busy) await worker.renew();
      await tickOnce(scene);
      tokens = (await popAll(scene)).length;
      await inspect(scene);
    }
    // The first tend, the grace of the epoch, and a tick for each.
    expect(passed).toBeLessThanOrEqual(20_000 + 5_000 + 3_000);
    const [done] = [{ entry: `${scene.generation}-0` }];
    await busy[0]!.settle([success(done)]);
  });
});
