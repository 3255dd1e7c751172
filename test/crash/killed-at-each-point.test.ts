import { expect } from 'vitest';
import { type Flow, test } from '../support/flow.js';
import { everyPoint, type Fate, type Point, PointRun } from '../support/point-by-point.js';

/** The victim dies at its n-th command, or does all the work. */
async function kill(flow: Flow, fate: Fate): Promise<Point> {
  const run = new PointRun(flow, fate);
  await run.submit();
  const command = await run.met();
  if (command === '') run.victim.kill('SIGKILL');
  expect(await run.victim.ended).toBe('SIGKILL');
  await run.rescue();
  await run.tickUntil(() => run.over());
  await run.check();
  await run.end();
  return { ...fate, command };
}

for (const when of ['before', 'after'] as const) {
  test(`a worker that is killed ${when} any of its commands loses nothing and counts nothing twice`, {
    timeout: 240_000,
  }, async ({ flow }) => {
    const points = await everyPoint(flow, { signal: 'SIGKILL', when }, kill);
    console.log(
      `killed ${when}: ${points.map(({ at, command }) => `${at} ${command}`).join(', ')}`,
    );
    const cut = [...new Set(points.map(({ command }) => command))];
    // The rest depends on who is faster.
    const calls = ['tick', 'enter', 'settle'];
    expect(cut).toEqual(expect.arrayContaining(calls));
  });
}
