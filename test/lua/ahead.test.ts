import { ControlCommands, type Entered } from '@piecework/protocol';
import { describe, expect, it } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import {
  back,
  failure,
  given,
  Hand,
  holds,
  LEASE_MS,
  type Scene,
  success,
} from '../support/given.js';
import { inspect } from '../support/peek.js';
import { readAhead, running } from '../support/read-ahead.js';

useTestClock();

const control = ({ connection, id }: Scene) => new ControlCommands(connection, id);

describe('a settle that reads ahead', () => {
  it('brings as many more than there are permits for as it was asked', async () => {
    const { scene, hand, entries } = await running(4);
    const done = [success(entries[0]!)];
    const settled = await readAhead(scene, hand, { running: 3, read: 4, ahead: 3 }, done);
    expect(settled).toMatchObject({ permits: 4, read: [4, 5, 6, 7] });
    expect((await inspect(scene)).counts).toMatchObject({ succeeded: 1, inFlight: 7, ready: 12 });
  });

  it('brings no more than was asked in all', async () => {
    const { scene, hand } = await running(4);
    expect(await readAhead(scene, hand, { running: 2, read: 1, ahead: 9 })).toMatchObject({
      read: [4],
    });
    expect(await readAhead(scene, hand, { read: 9, ahead: 2 })).toMatchObject({ read: [5, 6] });
  });

  it('brings nothing in a call that comes late or again, and nothing is lost of it', async () => {
    const { scene, hand } = await running(4);
    const { op } = hand;
    expect((await readAhead(scene, hand, { read: 2, ahead: 2 })).read).toEqual([4, 5]);
    for (const number of [hand.op, op]) {
      const late = await readAhead(scene, hand, { op: number, read: 2, ahead: 2 });
      expect(late).toMatchObject({ read: [], unsure: true, share: 0, permits: 4 });
    }
    expect((await inspect(scene)).counts).toMatchObject({ inFlight: 6, ready: 14 });
  });

  it('is refused while the request is held, and not after it', async () => {
    const { scene, hand } = await running(2);
    await holds(scene).hold(scene.generation, 10_000);
    expect(await readAhead(scene, hand, { read: 3, ahead: 3 })).toMatchObject({
      read: [],
      share: -1,
    });
    moveClock(10_001);
    expect(await readAhead(scene, hand, { read: 3, ahead: 3 })).toMatchObject({
      read: [2, 3, 4],
      share: 15,
    });
  });

  it('is refused while the request is being cancelled', async () => {
    const { scene, hand, entries } = await running(2, { items: 3 });
    await readAhead(scene, hand, { read: 1, ahead: 1 });
    await scene.request.cancel(scene.generation);
    const settled = await readAhead(scene, hand, { running: 1, read: 3, ahead: 3 }, [
      back(entries[0]!),
    ]);
    expect(settled).toMatchObject({ read: [], share: -1, cancelling: true });
  });

  it('is refused above a lowered limit only', async () => {
    const { scene, hand, entries } = await running(3);
    await control(scene).update(scene.generation, { limit: 2 });
    expect(await readAhead(scene, hand, { read: 3, ahead: 3 })).toMatchObject({
      read: [],
      share: -1,
      permits: 3,
    });
    const done = [success(entries[0]!)];
    expect(await readAhead(scene, hand, { running: 2, read: 3, ahead: 3 }, done)).toMatchObject({
      read: [3, 4, 5],
      permits: 2,
    });
  });

  it('leaves what was read ahead to others when its worker returns it, with no attempt', async () => {
    const { scene, hand } = await running(2, { items: 4, attempts: 2 });
    await readAhead(scene, hand, { read: 2, ahead: 2 });
    const ahead = [2, 3].map((index) => back({ entry: `${scene.generation}-${index}` }));
    await hand.settle(ahead, { running: 2 });
    expect(await inspect(scene)).toMatchObject({ counts: { ready: 2, inFlight: 2 }, tries: {} });
  });
});

describe('an enter for slots that are still in use', () => {
  const enter = (scene: Scene, awaited: number) =>
    scene.request.enter({
      ...{ generation: scene.generation, worker: 'worker', op: 1, want: 4, leaseMs: LEASE_MS },
      ...{ tasks: '*', epochs: ['1'], most: 16, awaited },
    });

  it('reads for them', async () => {
    const scene = await given.sealed({ items: 20, limit: 9 });
    const { entries } = (await enter(scene, 3)) as Entered;
    expect(entries).toHaveLength(4);
  });

  it('reads nothing for them where the first crash is final', async () => {
    const scene = await given.sealed({ items: 20, limit: 9, maxCrashes: 1 });
    const { entries, permits } = (await enter(scene, 3)) as Entered;
    expect([entries.length, permits]).toEqual([1, 4]);
  });
});

describe('an enter of a worker with short handlers', () => {
  const enter = (scene: Scene, most = 16) =>
    scene.request.enter({
      ...{ generation: scene.generation, worker: 'worker', op: 1, want: 2, leaseMs: LEASE_MS },
      ...{ tasks: '*', epochs: ['1'], most, ahead: 1, quick: 4 },
    });
  const read = ({ entries, permits, ready, mint }: Entered) => [
    entries.length,
    permits,
    ready,
    mint,
  ];

  it('reads the request to its end although others could run it, and mints no token', async () => {
    const scene = await given.sealed({ items: 10, limit: 9 });
    expect(read((await enter(scene)) as Entered)).toEqual([10, 2, 0, 0]);
    expect((await inspect(scene)).counts).toMatchObject({ inFlight: 10, ready: 0 });
  });

  it('reads for its permits where the first crash is final, and mints tokens for the rest', async () => {
    const scene = await given.sealed({ items: 10, limit: 9, maxCrashes: 1 });
    expect(read((await enter(scene)) as Entered)).toEqual([2, 2, 8, 2]);
  });

  it('reads for its permits what does not fit into its reply, and mints tokens for the rest', async () => {
    const scene = await given.sealed({ items: 10, limit: 9 });
    expect(read((await enter(scene, 9)) as Entered)).toEqual([2, 2, 8, 2]);
  });
});

describe('the share of a worker in what nobody has read', () => {
  it('is all of it for the only worker', async () => {
    const { scene, hand } = await running(4);
    expect(await readAhead(scene, hand, { read: 2, ahead: 2 })).toMatchObject({ share: 14 });
  });

  it('is the part that its permits are of all, rounded down', async () => {
    const { scene, hand } = await running(2, { limit: 5 });
    const other = new Hand(scene, 'other');
    await other.hold(3, [1, 1]);
    // 15 are unread before, 14 behind it.
    expect(await readAhead(scene, hand, { read: 1, ahead: 1 })).toMatchObject({ share: 5 });
    expect(await readAhead(scene, other, { read: 1, ahead: 1 })).toMatchObject({ share: 7 });
  });

  it('is nothing when nothing was asked for, or nothing is unread', async () => {
    const { scene, hand } = await running(2, { items: 4 });
    expect(await readAhead(scene, hand, { read: 0 })).toMatchObject({ share: 0 });
    expect(await readAhead(scene, hand, { read: 2, ahead: 2 })).toMatchObject({
      read: [2, 3],
      share: 0,
    });
    expect(await readAhead(scene, hand, { read: 2, ahead: 2 })).toMatchObject({
      read: [],
      share: 0,
    });
  });

  it('counts neither what waits for its next attempt nor what is settled', async () => {
    const { scene, hand, entries } = await running(4, { attempts: 2 });
    const outcomes = [failure(entries[0]!, 60_000), success(entries[1]!)];
    const settled = await readAhead(scene, hand, { running: 2, read: 2 }, outcomes);
    expect(settled).toMatchObject({ read: [4, 5], share: 14 });
  });

  it('is exact in a request that is still being filled', async () => {
    const scene = await given.filled({ items: 9, limit: 2 });
    const hand = new Hand(scene);
    await hand.hold(2);
    expect(await readAhead(scene, hand, { read: 2, ahead: 2 })).toMatchObject({ share: 5 });
  });
});

describe('the speed of all workers', () => {
  it('follows from the permits of all and from how many have not ended', async () => {
    const { scene, hand, entries } = await running(2, { limit: 5 });
    await new Hand(scene, 'other').hold(3, [1, 1]);
    expect(await readAhead(scene, hand, { read: 0 })).toMatchObject({ granted: 5, left: 20 });
    const settled = await readAhead(scene, hand, { read: 0 }, [success(entries[0]!)]);
    expect(settled).toMatchObject({ granted: 5, left: 19 });
  });

  it('is not known while more may be appended', async () => {
    const scene = await given.filled({ items: 9, limit: 2 });
    const hand = new Hand(scene);
    await hand.hold(2);
    expect(await readAhead(scene, hand, { read: 0 })).toMatchObject({ granted: 2, left: -1 });
  });
});
