import type { CrashCause } from '@piecework/protocol';
import { expect } from 'vitest';
import { moveClock } from './clock.js';
import { given, Hand, LEASE_MS, type Scene } from './given.js';
import { inspect } from './peek.js';

export const BOOT_ID = 'web-1-4242-aB_-5678';

export const tend = ({ request, generation }: Scene) => request.tend(generation, '');

export async function leasesEnd(scene: Scene) {
  moveClock(LEASE_MS + 1);
  return tend(scene);
}

/** A request of `items` that have crashed once, all of them suspects: two crashes are the limit. */
export async function suspects(items: number): Promise<Scene> {
  const scene = await given.sealed({ items, limit: items, maxCrashes: 2 });
  await new Hand(scene, 'first').hold(items);
  await leasesEnd(scene);
  return scene;
}

/** A worker runs `n` suspects beside each other, `company` with those of others, and dies of it. */
export async function crashTogether(scene: Scene, name: string, n: number, company = n) {
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
export async function held(): Promise<Scene> {
  const scene = await given.sealed({ items: 1, limit: 1, maxCrashes: 1 });
  await new Hand(scene, BOOT_ID).hold(1);
  return scene;
}

export const cause = ({ request, generation }: Scene, known: CrashCause, dead: boolean) =>
  request.cause(generation, BOOT_ID, known, dead);

export const errorOf = async (scene: Scene) =>
  JSON.parse((await inspect(scene)).failed['0'] as string);
