import { expect } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import { append, create, given, tickOnce } from '../support/given.js';
import { inspect, inspectQueue } from '../support/peek.js';
import { playTraces, type Trace } from '../support/trace.js';

/*
 * Short histories that broke an earlier protocol, each with the cure that the scripts have for it
 * (trace.ts says how they are played). docs/guarantees.md names them.
 */

useTestClock();

const traces: Record<string, Trace> = {
  // Intent, tend 'missing' -> removed, late create + append ok, crash: nothing ever fires.
  'a create that comes after its intent was given up is refused': {
    async play() {
      const scene = await given.opened();
      moveClock(21_000);
      await tickOnce(scene);
      expect((await inspectQueue(scene)).open).toEqual({});
      expect(await create(scene)).toMatchObject({ verdict: 'void' });
    },
    without: [{ script: 'tend', cure: 'tombstone for an intent without a request' }],
  },

  // A retained request; intent of the next life; given up (voided); retention ends; late create: an
  // orphan, as in D6, because what remembered the void was gone.
  'the tombstone of an intent outlasts the retention of the generation before': {
    async play() {
      const first = await given.sealed({ items: 0, retentionMs: 1_000 });
      await first.queue.finish(first.id, first.generation, 'succeeded');
      const second = await given.opened({ id: first.id, queue: first.queue.keys.queue });
      moveClock(21_000);
      await tickOnce(second);
      expect((await inspectQueue(second)).open).toEqual({});
      const { client } = first.connection;
      expect(await client.pttl(first.request.keys.request)).toBeGreaterThan(120_000);
      expect(await create(second)).toMatchObject({ verdict: 'exists', status: 'complete' });
    },
    without: [{ script: 'tend', cure: 'tombstone beyond the retention of the generation before' }],
  },

  // A and B submit an id that is retained, under one new generation. B is refused; the retained life
  // is dropped; A creates; B's finish takes A's life off the queue side: nothing ever fires.
  'a generation that one submitter was refused cannot be created by another': {
    async play() {
      const first = await given.sealed({ items: 0 });
      await first.queue.finish(first.id, first.generation, 'succeeded');
      const next = await given.opened({ id: first.id, queue: first.queue.keys.queue });
      expect(await create(next, { owner: 'B' })).toMatchObject({ verdict: 'exists' });
      await next.request.drop();
      expect(await create(next, { owner: 'A' })).toMatchObject({ verdict: 'void' });
    },
    without: [{ script: 'create', cure: 'a refused generation is refused to everybody' }],
  },

  // Created, complete, finished; a retention of a second is over; a create of the same generation comes
  // late: open, on no queue, for ever.
  'a create that comes when a short retention is over brings nothing into being': {
    async play() {
      const first = await given.sealed({ items: 0, retentionMs: 1 });
      const { id, queue, request, connection } = first;
      await queue.finish(id, first.generation, 'succeeded');
      await connection.client.unlink(request.keys.request);
      expect(await create(first)).toMatchObject({ verdict: 'void' });
      expect(await create(first, { owner: 'another' })).toMatchObject({ verdict: 'void' });
      expect((await inspect(first)).status).toBe('none');
      // What says so goes by itself, and is in nobody's way.
      const left = await connection.client.pttl(request.keys.work);
      expect(left).toBeGreaterThan(100_000);
      expect(left).toBeLessThanOrEqual(121_000);
      expect(await request.read('worker', 1)).toBe('gone');
      expect(await request.drop()).toEqual({ verdict: 'gone' });
      const next = await given.filled({ id, queue: queue.keys.queue, items: 1 });
      expect((await inspect(next)).counts).toMatchObject({ total: 1, ready: 1 });
      expect(await connection.client.pttl(request.keys.work)).toBe(-1);
    },
    without: [
      {
        script: 'create',
        cure: 'a generation is remembered until its create is too old',
        change: 'never',
      },
      {
        script: 'seal',
        cure: 'a generation is remembered until its create is too old, 2',
        change: 'always',
      },
      {
        script: 'seal',
        cure: 'a generation is remembered until its create is too old, 3',
        change: { becomes: "'0-1'" },
      },
    ],
  },

  // Append with HINCRBY of what was sent: I1 broken when it is sent again.
  'a chunk that is sent twice adds nothing twice': {
    async play() {
      const scene = await given.filled({ items: 3 });
      await append(scene, 3);
      await append(scene, 3, 1);
      const { counts, work } = await inspect(scene);
      expect(counts.total).toBe(4);
      expect(work).toEqual([0, 1, 2, 3]);
    },
    without: [
      { script: 'append', cure: 'absolute totals in append', change: { becomes: 'count' } },
    ],
  },
};

playTraces('a history of submitting that broke an earlier protocol', traces);
