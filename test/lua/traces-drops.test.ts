import { expect } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import { create, given, tickOnce } from '../support/given.js';
import { inspect, inspectQueue } from '../support/peek.js';
import { playTraces, type Trace } from '../support/trace.js';

/*
 * Short histories that broke an earlier protocol, each with the cure that the scripts have for it
 * (trace.ts says how they are played). docs/guarantees.md names them.
 */

useTestClock();

const traces: Record<string, Trace> = {
  // The late finish of life 1 removes life 2: nothing ever fires.
  'a late finish of one generation leaves the next one of the id alone': {
    async play() {
      const first = await given.sealed({ items: 1 });
      await first.request.drop();
      await first.queue.finish(first.id, first.generation, 'dropped');
      const second = await given.filled({ id: first.id, queue: first.queue.keys.queue });
      expect(second.generation).toBeGreaterThan(first.generation);
      await first.queue.finish(first.id, first.generation, 'dropped');
      expect((await inspectQueue(second)).open).toEqual({ [second.id]: second.generation });
    },
    without: [{ script: 'finish', cure: 'generation on finish' }],
  },

  // A retained life is dropped while the intent of the next one is open; the intent comes to nothing,
  // which forgets no end: the queue listed the dropped life for 7 days.
  'a generation that is dropped is forgotten though the next one is open and comes to nothing': {
    async play() {
      const first = await given.sealed({ items: 0 });
      await first.queue.finish(first.id, first.generation, 'succeeded');
      const next = await given.opened({ id: first.id, queue: first.queue.keys.queue });
      await first.request.drop(first.generation);
      await first.queue.finish(first.id, first.generation, 'dropped');
      expect((await inspectQueue(next)).open).toEqual({ [next.id]: next.generation });
      moveClock(21_000);
      await tickOnce(next);
      expect(await inspectQueue(next)).toMatchObject({ open: {}, history: {} });
      expect((await inspectQueue(next)).history).toEqual({});
    },
    without: [{ script: 'finish', cure: 'a dropped generation is forgotten whatever is open' }],
  },

  // The same, and whoever drops dies before `finish`: asked again, it said that there is nothing to drop.
  'a drop that was cut in two can be taken up when the next intent came to nothing': {
    async play() {
      const first = await given.sealed({ items: 0 });
      const { id, queue, request } = first;
      await queue.finish(id, first.generation, 'succeeded');
      const next = await given.opened({ id, queue: queue.keys.queue });
      await request.drop(first.generation);
      moveClock(21_000);
      await tickOnce(next);
      expect(await create(next)).toMatchObject({ verdict: 'void' });
      const dropped = await request.drop(first.generation);
      expect(dropped).toEqual({
        verdict: 'dropped',
        generation: next.generation,
        queue: queue.keys.queue,
      });
      await queue.finish(id, next.generation, 'dropped');
      expect((await inspectQueue(next)).history).toEqual({});
    },
    without: [
      { script: 'tend', cure: 'a dropped request stays dropped', change: { becomes: "'void'" } },
    ],
  },

  // Drop; the next life of the id; the drop arrives again: the next life is gone, and nobody asked for it.
  'a drop that arrives late leaves the next generation of the id alone': {
    async play() {
      const first = await given.filled();
      const { id, queue, request, generation } = first;
      const dropped = await request.drop(generation);
      expect(await request.drop(generation)).toEqual(dropped);
      await queue.finish(id, generation, 'dropped');
      // Within one millisecond the next life may be refused as too old, and would be asked for once more.
      moveClock(2);
      const next = await given.filled({ id, queue: queue.keys.queue });
      expect(await request.drop(generation)).toEqual({ verdict: 'gone' });
      expect(await inspect(next)).toMatchObject({ status: 'open', generation: next.generation });
    },
    without: [{ script: 'drop', cure: 'generation on drop', change: 'never' }],
  },
};

playTraces('a history of generations and drops that broke an earlier protocol', traces);
