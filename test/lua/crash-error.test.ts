import type { CrashCause } from '@piecework/protocol';
import { describe, expect, it } from 'vitest';
import { useTestClock } from '../support/clock.js';
import { failure, given, Hand } from '../support/given.js';
import { inspect, snapshot } from '../support/peek.js';
import {
  BOOT_ID,
  cause,
  crashTogether,
  errorOf,
  held,
  leasesEnd,
  suspects,
  tend,
} from '../support/suspects.js';

useTestClock();

describe('the error of a crash', () => {
  it.each<[CrashCause, string]>([
    [{}, 'stopped renewing its lease'],
    [{ exitCode: 1 }, 'ended with exit code 1'],
    [{ signal: 'SIGSEGV' }, 'was ended by SIGSEGV'],
    [{ signal: 'SIGKILL', outOfMemory: 'perhaps' }, 'was ended by SIGKILL, perhaps out of memory'],
    [{ blockedMs: 31_500 }, 'had blocked its event loop for 31 s'],
  ])('says what is known: %j', async (known, words) => {
    const scene = await held();
    await cause(scene, known, false);
    await leasesEnd(scene);
    expect(await errorOf(scene)).toEqual({
      name: 'CrashError',
      message: `its worker ended 1 time while it ran: process 4242 on web-1 ${words}`,
      crashes: 1,
      worker: BOOT_ID,
      host: 'web-1',
      pid: 4242,
      ...known,
    });
  });

  it('is in the error of each entry of the worker, also of those that a later tend takes back', async () => {
    const scene = await given.sealed({ items: 150, limit: 150, maxCrashes: 1 });
    await new Hand(scene, BOOT_ID).hold(150);
    await cause(scene, { signal: 'SIGKILL' }, true);
    await tend(scene);
    await tend(scene);
    const { failed, fields, counts } = await inspect(scene);
    expect(counts).toMatchObject({ failed: 150 });
    for (const index of [0, 149])
      expect(JSON.parse(failed[index] as string)).toMatchObject({ signal: 'SIGKILL' });
    expect(fields).not.toHaveProperty(`crashed:${BOOT_ID}`);
    expect(fields).not.toHaveProperty(`cause:${BOOT_ID}`);
  });

  it('is nothing that is left behind by a worker that held nothing', async () => {
    const scene = await given.filled({ items: 1, limit: 1 });
    const worker = new Hand(scene, BOOT_ID);
    await worker.enter(1);
    await cause(scene, { exitCode: 1 }, true);
    await tend(scene);
    await tend(scene);
    expect((await inspect(scene)).fields).not.toHaveProperty(`cause:${BOOT_ID}`);
  });

  it('is not noted of a worker without a permit, or in another generation', async () => {
    const scene = await held();
    const before = await snapshot(scene);
    const { request, generation } = scene;
    expect(await request.cause(generation, 'other', {}, true)).toBe('lost');
    expect(await request.cause(generation - 1, BOOT_ID, {}, true)).toBe('gone');
    expect(await snapshot(scene)).toEqual(before);
  });
});

describe('a suspect', () => {
  it('leaves nothing of its company when its last attempt fails', async () => {
    const scene = await suspects(2);
    await crashTogether(scene, 'second', 2);
    const worker = new Hand(scene);
    await worker.enter(2);
    const entries = await worker.take(2);
    await scene.request.runAlone(
      scene.generation,
      'worker',
      2,
      entries.map(({ entry }) => entry),
    );
    await worker.settle([failure(entries[0]!)], { keep: 1, running: 1 });
    const { client } = scene.connection;
    const fields = await client.hkeys(scene.request.keys.tries);
    expect(fields.toSorted()).toEqual(['1:company', '1:crashes']);
  });

  it('runs with the others only if all of them are with this worker', async () => {
    const scene = await suspects(2);
    const worker = new Hand(scene);
    await worker.enter(1);
    const [mine] = await worker.take(1);
    const before = await snapshot(scene);
    const both = [mine!.entry, `${scene.generation}-1`];
    expect(await scene.request.runAlone(scene.generation, 'worker', 2, both)).toMatchObject({
      verdict: 'lost',
    });
    expect(await snapshot(scene)).toEqual(before);
  });
});
