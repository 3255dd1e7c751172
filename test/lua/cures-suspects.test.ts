import type { CrashCause } from '@piecework/protocol';
import { describe, expect, it } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import { failure, given, Hand, LEASE_MS, type Scene } from '../support/given.js';
import { inspect, snapshot } from '../support/peek.js';
import { playTraces, type Trace } from '../support/trace.js';

/*
 * Suspects in company, and what is known of the end of their worker.
 */

useTestClock();

const BOOT_ID = 'web-1-4242-aB_-5678';

const tend = ({ request, generation }: Scene) => request.tend(generation, '');

async function leasesEnd(scene: Scene) {
  moveClock(LEASE_MS + 1);
  return tend(scene);
}

/** A request of `items` that have crashed once, all of them suspects: two crashes are the limit. */
async function suspects(items: number): Promise<Scene> {
  const scene = await given.sealed({ items, limit: items, maxCrashes: 2 });
  await new Hand(scene, 'first').hold(items);
  await leasesEnd(scene);
  return scene;
}

/** A worker runs `n` suspects beside each other, `company` with those of others, and dies of it. */
async function crashTogether(scene: Scene, name: string, n: number, company = n) {
  const worker = new Hand(scene, name);
  await worker.enter(n);
  const entries = (await worker.take(n)).map(({ entry }) => entry);
  const { request, generation } = scene;
  expect(await request.runAlone(generation, name, company, entries)).toMatchObject({
    verdict: 'ok',
  });
  return leasesEnd(scene);
}

/** A request of one, which a worker holds and fails by its first crash. */
async function held(): Promise<Scene> {
  const scene = await given.sealed({ items: 1, limit: 1, maxCrashes: 1 });
  await new Hand(scene, BOOT_ID).hold(1);
  return scene;
}

const cause = ({ request, generation }: Scene, known: CrashCause, dead: boolean) =>
  request.cause(generation, BOOT_ID, known, dead);

const errorOf = async (scene: Scene) => JSON.parse((await inspect(scene)).failed['0'] as string);

const traces: Record<string, Trace> = {
  'suspects, in company': {
    says: 'suspects that crash in company fail by it never, however often',
    async play() {
      const scene = await suspects(2);
      for (const name of ['second', 'third', 'fourth']) await crashTogether(scene, name, 2);
      const { counts, crashes } = await inspect(scene);
      expect(counts).toMatchObject({ failed: 0, ready: 2 });
      expect(crashes).toEqual({ 0: 4, 1: 4 });
    },
    without: [{ script: 'run-alone', from: 'if company == 1 then', to: 'if company > 0 then' }],
  },

  'suspects, company of others': {
    says: 'a suspect that runs beside those of another request does not run alone',
    async play() {
      const scene = await suspects(1);
      await crashTogether(scene, 'second', 1, 2);
      expect((await inspect(scene)).counts).toMatchObject({ failed: 0, ready: 1 });
    },
    without: [{ script: 'run-alone', from: 'if company == 1 then', to: 'if #ARGV == 4 then' }],
  },

  'suspects, smaller company': {
    says: 'whoever takes a suspect hears in what company it crashed, and so makes it smaller',
    async play() {
      const scene = await suspects(8);
      const first = new Hand(scene, 'second');
      await first.enter(8);
      expect((await first.take(8)).map(({ company }) => company)).toEqual(Array(8).fill(0));
      await leasesEnd(scene);
      await crashTogether(scene, 'third', 6);
      const last = new Hand(scene, 'fourth');
      await last.enter(8);
      const taken = await last.take(8);
      expect(taken.map(({ company }) => company)).toEqual([...Array(6).fill(6), 0, 0]);
      expect(taken.every(({ suspect }) => suspect)).toBe(true);
    },
    without: [
      {
        script: 'run-alone',
        from: "redis.call('HSET', tries, index .. ':company', company)",
        to: '',
      },
    ],
  },

  'cause, dead': {
    says: 'a worker that is known to be dead holds nothing any more',
    async play() {
      const scene = await held();
      expect(await cause(scene, { exitCode: 134 }, true)).toBe('ok');
      expect(await tend(scene)).toMatchObject({ verdict: 'complete' });
    },
    without: [
      {
        script: 'cause',
        from: "redis.call('HSET', request, leaseField, math.min(ends, state.at))",
        to: '',
      },
    ],
  },

  'cause, of before': {
    says: 'what a worker went on after is not what it ended of',
    async play() {
      const scene = await held();
      await cause(scene, { blockedMs: 30_000 }, false);
      moveClock(1_000);
      await scene.request.renew(scene.generation, BOOT_ID, LEASE_MS, []);
      await leasesEnd(scene);
      expect(await errorOf(scene)).not.toHaveProperty('blockedMs');
    },
    without: [{ script: 'tend', from: 'causes[worker].at < written - (term or 0)', to: 'false' }],
  },
};

playTraces('a history of suspects', traces);

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

  it('says it of all that the worker held, also what a later look takes back', async () => {
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

  it('is not noted of who holds no permit, or in another life', async () => {
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
