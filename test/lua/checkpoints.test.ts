import { describe, expect, it } from 'vitest';
import { useTestClock } from '../support/clock.js';
import {
  back,
  failure,
  given,
  Hand,
  LEASE_MS,
  type Options,
  type Scene,
  success,
} from '../support/given.js';
import { pass } from '../support/pass.js';
import { inspect } from '../support/peek.js';

useTestClock();

const FIRST = '{"row":1}';
const SECOND = '{"row":2}';

/** What `tries` keeps of checkpoints: index → JSON. */
async function kept({ connection, request }: Scene): Promise<Record<string, string>> {
  const fields = await connection.client.hgetall(request.keys.tries);
  const found = Object.entries(fields).filter(([field]) => field.endsWith(':checkpoint'));
  return Object.fromEntries(found.map(([field, value]) => [field.split(':')[0], value]));
}

const checkpoint = ({ request, generation }: Scene, worker: string, ...reports: string[]) =>
  request.renew(generation, worker, LEASE_MS, reports);

/** A worker holds both sub-requests, and both have come to a checkpoint. */
async function held(options: Options = {}) {
  const scene = await given.sealed({ items: 2, limit: 2, attempts: 2, ...options });
  const hand = new Hand(scene);
  const [first, second] = await hand.hold(2);
  await checkpoint(scene, 'worker', '0:checkpoint', FIRST, '1:checkpoint', SECOND);
  return { scene, hand, first: first!, second: second! };
}

describe('a checkpoint', () => {
  it('is kept by the renewal, beside what was reported, and the last one counts', async () => {
    const { scene } = await held();
    expect(await kept(scene)).toEqual({ 0: FIRST, 1: SECOND });
    const again = await checkpoint(scene, 'worker', '1', '25', '0:checkpoint', SECOND);
    expect(again).toEqual({ verdict: 'ok', permits: 2 });
    expect(await kept(scene)).toEqual({ 0: SECOND, 1: SECOND });
    expect((await scene.request.inspect())?.progress).toEqual({ 1: '25' });
  });

  it('is given to the next attempt, after a failure and after a give-back', async () => {
    const { scene, hand, first, second } = await held();
    await hand.settle([failure(first), back(second)]);
    const taken = await hand.take(2);
    // What was given back is ready since ever, a failure since now.
    expect(taken).toMatchObject([
      { index: 1, tries: 0, checkpoint: SECOND },
      { index: 0, tries: 1, checkpoint: FIRST },
    ]);
    await inspect(scene);
  });

  it('is given to the next attempt when its worker died', async () => {
    const { scene } = await held();
    await pass(scene, LEASE_MS + 1_000);
    const next = new Hand(scene, 'next');
    await next.enter(2);
    expect(await next.take(2)).toMatchObject([
      { index: 0, crashes: 1, checkpoint: FIRST },
      { index: 1, crashes: 1, checkpoint: SECOND },
    ]);
  });

  it('is not taken from a worker that is not the one that runs it', async () => {
    const { scene, hand, first } = await held();
    await hand.settle([back(first)], { keep: 1, running: 1 });
    const next = new Hand(scene, 'next');
    await next.enter(1);
    await next.take(1);
    await checkpoint(scene, 'next', '0:checkpoint', SECOND);
    await checkpoint(scene, 'worker', '0:checkpoint', '"late"');
    await checkpoint(scene, 'stranger', '0:checkpoint', '"strange"');
    expect(await kept(scene)).toEqual({ 0: SECOND, 1: SECOND });
  });

  it('is not brought back by a renewal that comes after the settle', async () => {
    const { scene, hand, first } = await held();
    await hand.settle([success(first)], { keep: 1, running: 1 });
    await checkpoint(scene, 'worker', '0:checkpoint', FIRST);
    expect(await kept(scene)).toEqual({ 1: SECOND });
  });

  it('goes when its sub-request succeeds, fails for good, or crashes once too often', async () => {
    const { scene, hand, first, second } = await held({ items: 3, limit: 3, attempts: 1 });
    await hand.settle([success(first), failure(second)]);
    expect(await kept(scene)).toEqual({});
    const crashing = await held({ items: 3, limit: 3, maxCrashes: 1 });
    await pass(crashing.scene, LEASE_MS + 1_000);
    expect(await kept(crashing.scene)).toEqual({});
    expect((await inspect(crashing.scene)).counts).toMatchObject({ failed: 2, ready: 1 });
  });

  it('goes also when its success is asked for one by one', async () => {
    const { scene, hand, first } = await held();
    await hand.settle([success(first)], { keep: 1, running: 1, grantNo: '' });
    expect(await kept(scene)).toEqual({ 1: SECOND });
  });
});
