import { HISTORY_MS, historyOf, INTERVAL_MS, intervalsIn } from '@piecework/protocol';
import { describe, expect, it } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import { keysOf } from '../support/leaks.js';
import { fresh, report, rowsOf, seriesOf, succeededOf } from '../support/series.js';

useTestClock();

describe('the intervals of a queue', () => {
  it('contain all workers, by the last report of each', async () => {
    const scene = await fresh();
    const { queue } = scene;
    await queue.tick('a', report(3, [1, 0, 0, 0]));
    await queue.tick('b', report(5, [0, 2, 0, 0]));
    await queue.tick('a', report(4, [1, 0, 0, 0]));
    await queue.tick('', '');
    expect(await rowsOf(scene)).toEqual([[1, 2, 0, 0, 9, 20, 2]]);
    await queue.deregister('b', report(0, [0, 3, 0, 0]));
    moveClock(INTERVAL_MS);
    await queue.tick('a', report(4, [1, 0, 0, 0]));
    expect(await rowsOf(scene)).toEqual([
      [0, 0, 0, 0, 4, 10, 1],
      [1, 3, 0, 0, 4, 20, 2],
    ]);
  });

  it('are not begun by a report without figures, which counts nowhere', async () => {
    const scene = await fresh();
    await scene.queue.tick('other', '{"tasks":"*"}');
    expect(await seriesOf(scene)).toEqual([]);
    await scene.queue.tick('a', report(3, [1, 0, 0, 0]));
    moveClock(INTERVAL_MS);
    await scene.queue.tick('a', report(3, [1, 0, 0, 0]));
    expect((await seriesOf(scene)).map(({ workers }) => workers)).toEqual([1, 1]);
    await scene.queue.deregister('other');
  });

  it('count what a worker did since its last answered report if the server has lost that one', async () => {
    const scene = await fresh();
    await scene.queue.tick('a', report(3, [5, 0, 0, 0]));
    await scene.connection.client.hdel(scene.queue.keys.workerInfo, 'a');
    await scene.queue.tick('a', report(3, [7, 0, 0, 0], [5, 0, 0, 0]));
    expect(await succeededOf(scene)).toEqual([7]);
  });

  it('begin anew after a silence of more than a minute', async () => {
    const scene = await fresh();
    await scene.queue.tick('a', report(3, [5, 0, 0, 0]));
    moveClock(120_000);
    await scene.queue.tick('b', report(1, [1, 0, 0, 0]));
    expect(await succeededOf(scene)).toEqual([1, 5]);
  });

  it('expire, and go with their queue', async () => {
    const scene = await fresh();
    const { id, generation, queue, connection } = scene;
    await queue.tick('a', report(3, [5, 0, 0, 0]));
    const ttl = await connection.client.pttl(queue.keys.series);
    expect(ttl).toBeGreaterThan(HISTORY_MS);
    await queue.finish(id, generation, 'gone');
    expect(await seriesOf(scene)).toHaveLength(1);
    await queue.deregister('a', report(0, [6, 0, 0, 0]));
    expect(await keysOf(connection.client, queue.keys.queue)).toEqual([]);
  });

  it('go with the last request of a queue without workers', async () => {
    const scene = await fresh();
    const { id, generation, queue, connection } = scene;
    await queue.tick('a', report(3, [5, 0, 0, 0]));
    await queue.deregister('a', report(0, [6, 0, 0, 0]));
    expect(await succeededOf(scene)).toEqual([6]);
    await queue.finish(id, generation, 'gone');
    expect(await keysOf(connection.client, queue.keys.queue)).toEqual([]);
  });
});

describe('the history', () => {
  const point = (at: number, succeeded: number, inFlight: number, workers = 1) => ({
    ...{ at, succeeded, failed: 0, cancelled: 0, retried: 0 },
    ...{ inFlight, slots: 10 * workers, workers },
  });
  const START = 1_800_000_000_000;

  it('has a point for each interval, the oldest first', () => {
    const intervals = [point(START, 4, 2), point(START - 2 * INTERVAL_MS, 3, 1)];
    const history = historyOf([{ now: START + 1, workers: 1, intervals }], 30_000);
    expect(history.map(({ at, succeeded }) => [at - START, succeeded])).toEqual([
      ...[
        [-30_000, 0],
        [-20_000, 3],
        [-10_000, 0],
        [0, 4],
      ],
    ]);
    expect(historyOf([{ now: START + 1, workers: 1, intervals }], 0)).toHaveLength(1);
    const hour = historyOf([{ now: START + 1, workers: 1, intervals }], HISTORY_MS);
    expect(hour).toHaveLength(intervalsIn(HISTORY_MS));
  });

  it('assumes that workers go on as they reported last, for a minute, unless they have left', () => {
    const intervals = [point(START, 4, 2)];
    const at = (ms: number, workers: number) =>
      historyOf([{ now: START + ms, workers, intervals }], 0)[0];
    expect(at(60_000, 1)).toMatchObject({ succeeded: 0, inFlight: 2, slots: 10, workers: 1 });
    expect(at(70_000, 1)).toMatchObject({ inFlight: 0, slots: 0, workers: 0 });
    expect(at(10_000, 0)).toMatchObject({ inFlight: 0, slots: 0, workers: 0 });
  });

  it('adds up shards, whose workers are the same', () => {
    const shards = [
      { now: START + 1, workers: 2, intervals: [point(START, 4, 2, 2)] },
      { now: START + 5, workers: 2, intervals: [point(START, 1, 3, 2)] },
      { now: START + 5, workers: 0, intervals: [] },
    ];
    expect(historyOf(shards, 0)).toEqual([point(START, 5, 5, 2)]);
  });
});
