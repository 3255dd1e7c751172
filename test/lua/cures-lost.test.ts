import { expect } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import { create, given, type Scene } from '../support/given.js';
import { inspectQueue } from '../support/peek.js';
import { playTraces, type Trace } from '../support/trace.js';

/* Histories of a server that lost its last writes on the queue side. */

useTestClock();

const forgets = ({ queue, connection }: Scene) =>
  connection.client.del(queue.keys.open, queue.keys.agenda);

const traces: Record<string, Trace> = {
  'an unfinished request takes the place of a later intent that it refused, and of no other': {
    async play() {
      const scene = await given.sealed();
      const { id, generation, queue } = scene;
      await forgets(scene);
      moveClock(1_000);
      const refused = await queue.intent(id);
      expect(refused).toBeGreaterThan(generation);
      expect(await create({ ...scene, generation: refused })).toMatchObject({ verdict: 'exists' });
      // A later life may be somebody's who knows nothing of this one.
      expect(await queue.reopen(id, generation)).toBe(false);
      expect(await queue.reopen(id, generation, refused + 1)).toBe(false);
      expect(await queue.reopen(id, generation, refused)).toBe(true);
      expect(await queue.reopen(id, generation, refused)).toBe(false);
      const { open, agenda } = await inspectQueue(scene);
      expect(open).toEqual({ [id]: generation });
      expect(Object.keys(agenda)).toEqual([id]);
    },
    without: [
      [
        {
          script: 'reopen',
          cure: 'an existing request takes the place of the intent that it refused',
          change: 'always',
        },
      ],
    ],
  },
  'a worker that returns tokens of a closed request learns that it is closed, and takes others all the same':
    {
      async play() {
        const scene = await given.sealed({ items: 2 });
        const { id, generation, queue } = scene;
        await forgets(scene);
        let closed = false;
        const minted = { id, generation, mint: 1, epoch: 1, priority: 50 };
        const taken = await queue.exchange(minted, 9, () => {
          closed = true;
        });
        expect(taken).toHaveLength(1);
        expect(closed).toBe(true);
      },
      without: [
        [
          {
            script: 'exchange',
            cure: 'an exchange says that nothing was returned',
            change: { becomes: "'exchanged'" },
          },
        ],
      ],
    },
};

playTraces('a server that lost its last writes', traces);
