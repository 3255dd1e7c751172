import { expect } from 'vitest';
import { LEASE_MS } from '../support/fleet.js';
import { type Flow, test } from '../support/flow.js';
import { everyPoint, type Fate, type Point, PointRun } from '../support/point-by-point.js';

/** The victim freezes at its n-th command for three leases, while another does what it can. */
async function freeze(flow: Flow, fate: Fate): Promise<Point> {
  const run = new PointRun(flow, fate);
  await run.submit();
  const command = await run.met();
  if (command === '') {
    run.victim.kill('SIGKILL');
    await run.victim.ended;
  } else {
    const awake = (await run.now()) + 3 * LEASE_MS;
    await run.rescue();
    await run.tickUntil(async () => (await run.now()) >= awake);
    run.victim.kill('SIGCONT');
    await run.tickUntil(() => run.over());
    // It has done by then whatever it still meant to do.
    run.victim.kill('SIGTERM');
    expect(await run.victim.ended).toBe(0);
  }
  await run.check();
  await run.end();
  return { ...fate, command };
}

for (const when of ['before', 'after'] as const) {
  test(`a worker that freezes for three leases ${when} any of its commands loses nothing and counts nothing twice`, {
    timeout: 240_000,
  }, async ({ flow }) => {
    const points = await everyPoint(flow, { signal: 'SIGSTOP', when }, freeze);
    console.log(
      `frozen ${when}: ${points.map(({ at, command }) => `${at} ${command}`).join(', ')}`,
    );
    const met = [...new Set(points.map(({ command }) => command))];
    // The rest depends on who is faster.
    const calls = ['tick', 'enter', 'settle'];
    expect(met).toEqual(expect.arrayContaining(calls));
  });
}
