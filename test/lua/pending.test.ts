/**
 * Requests that are submitted in one call, which needs one server for all keys.
 * @module-tag one-server
 */
import { RunningCommands } from '@piecework/protocol';
import { describe, expect, it } from 'vitest';
import { readSnapshots } from '../../packages/piecework/dist/operate/doctor/queue/request-snapshot.js';
import { moveClock, useTestClock } from '../support/clock.js';
import { given, Hand, LEASE_MS, type Scene, success } from '../support/given.js';
import { compact, isCompact, readWhole, submitWhole } from '../support/whole.js';

/*
 * What workers have of a request, whichever form it has (lua/pending.lua).
 */

useTestClock();

const runningOf = ({ connection, id }: Scene) => new RunningCommands(connection, id);

async function ownedBy(scene: Scene, worker: string, longerThanMs = 0) {
  const pages = [];
  for await (const page of runningOf(scene).ownedBy(worker, longerThanMs)) pages.push(...page);
  return pages;
}

describe('what one worker has read as a whole', () => {
  it('is running, with the worker and since when', async () => {
    const { scene } = await readWhole();
    expect(await runningOf(scene).owners()).toEqual([{ worker: 'worker', pending: 3 }]);
    const owned = await ownedBy(scene, 'worker');
    expect(owned.map(({ index, worker }) => ({ index, worker }))).toEqual(
      [0, 1, 2].map((index) => ({ index, worker: 'worker' })),
    );
    expect(await ownedBy(scene, 'worker', 60_000)).toEqual([]);
    expect(await ownedBy(scene, 'other')).toEqual([]);
  });

  it('is running for as long when a renewal makes the stream', async () => {
    const { scene, hand } = await readWhole();
    moveClock(60_000);
    expect(await ownedBy(scene, 'worker', 60_000)).toHaveLength(3);
    await hand.renew();
    expect(await isCompact(scene)).toBe(true);
    expect(await ownedBy(scene, 'worker', 60_000)).toHaveLength(3);
    await scene.request.renew(scene.generation, hand.name, LEASE_MS, [1, 50]);
    expect(await isCompact(scene)).toBe(false);
    expect(await ownedBy(scene, 'worker', 60_000)).toHaveLength(3);
    expect(await runningOf(scene).owners()).toEqual([{ worker: 'worker', pending: 3 }]);
  });

  it('is running for as long when its worker enters once more', async () => {
    const { scene, hand } = await readWhole();
    moveClock(60_000);
    await hand.enter(1, []);
    expect(await ownedBy(scene, 'worker', 60_000)).toHaveLength(3);
  });

  it('is running too when the clock has gone back', async () => {
    const { scene } = await readWhole();
    moveClock(-60_000);
    expect(await ownedBy(scene, 'worker')).toHaveLength(3);
  });

  it('does not run any more when it was settled', async () => {
    const { scene, hand } = await readWhole();
    const entries = [0, 1, 2].map((index) => ({ entry: `${scene.generation}-${index}` }));
    await hand.trySettle(entries.map((entry) => success(entry)));
    expect(await ownedBy(scene, 'worker')).toEqual([]);
    expect(await runningOf(scene).owners()).toBe('gone');
  });

  it('is told to the worker when a reply got lost', async () => {
    const { scene } = await readWhole();
    const entries = [0, 1, 2].map((index) => `${scene.generation}-${index}`);
    expect(await scene.request.pending('worker', 100)).toEqual(entries);
    expect(await scene.request.pending('worker', 2)).toEqual(entries.slice(0, 2));
    expect(await scene.request.pending('other', 100)).toEqual([]);
  });

  it('is running, with the worker and since when, of a compact request', async () => {
    const scene = await compact();
    expect(await runningOf(scene).owners()).toEqual([]);
    const hand = new Hand(scene);
    const entries = await hand.holdAtOnce(3);
    expect(await runningOf(scene).owners()).toEqual([{ worker: 'worker', pending: 3 }]);
    expect(await ownedBy(scene, 'worker')).toHaveLength(3);
    expect(await ownedBy(scene, 'worker', 60_000)).toEqual([]);
    const outcomes = entries.map((entry) => success(entry));
    expect(await hand.trySettle(outcomes, { keep: 0 })).toMatchObject({ verdict: 'complete' });
    expect(await ownedBy(scene, 'worker')).toEqual([]);
    expect(await runningOf(scene).owners()).toBe('gone');
    const nothing = await given.nothing();
    expect(await runningOf(nothing).owners()).toBe('gone');
  });

  it('is in flight for the doctor, and before it was read it is not', async () => {
    const { scene } = await readWhole();
    const other = await given.nothing();
    await submitWhole({ ...other, queue: scene.queue }, { items: 2 });
    const { connection, queue } = scene;
    const snapshots = [];
    const pages = readSnapshots(connection, queue.keys, [scene.id, other.id], Date.now());
    for await (const page of pages) snapshots.push(...page);
    expect(snapshots).toMatchObject([
      { pending: 3, returned: 0, entries: 3 },
      { pending: 0, returned: 0, entries: 2 },
    ]);
  });
});
