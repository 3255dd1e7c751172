import { expect } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import { givenIds, INCARNATION, TIMEOUT_MS } from '../support/given-ids.js';
import { keepKeys } from '../support/lost-writes.js';
import { playTraces, type Trace } from '../support/trace.js';

/* Short histories of a queue of ids, each for one cure of its scripts. */

useTestClock();

/** A task whose time ran out, and the queue that it is of. */
async function runOut(unique = false) {
  const scene = await givenIds(['a'], { unique });
  const task = await scene.take();
  moveClock(TIMEOUT_MS);
  return { scene, task };
}

const traces: Record<string, Trace> = {
  'the owner of a task that the server forgot does not end the task that got its number': {
    async play() {
      const scene = await givenIds();
      const { name: _, ...keys } = scene.commands.keys;
      const putBack = await keepKeys(scene.connection, Object.values(keys));
      await scene.add(['a']);
      const forgotten = await scene.take(1);
      await putBack();
      await scene.add(['b']);
      const task = await scene.take(2);
      expect(task).toMatchObject({ number: forgotten.number, id: 'b' });
      expect(await scene.done(forgotten)).toEqual({ verdict: 'late' });
      moveClock(TIMEOUT_MS);
      expect(await scene.resume(forgotten)).toMatchObject({ verdict: 'none' });
      expect(await scene.resume(task)).toMatchObject({ verdict: 'ready', id: 'b' });
      expect(await scene.done(task)).toEqual({ verdict: 'counted' });
    },
    without: [{ script: 'id-settle', cure: 'ids, a number given again' }],
  },

  'an add continues from what the server has of it': {
    async play() {
      const scene = await givenIds();
      const { name: _, ...keys } = scene.commands.keys;
      const chunk = (number: number) =>
        scene.commands.add(INCARNATION, { sender: 'many', number, keepMs: 60_000, first: 3 }, [
          `${number}`,
        ]);
      const putBack = await keepKeys(scene.connection, Object.values(keys));
      await chunk(3);
      await putBack();
      expect(await chunk(4)).toEqual({ verdict: 'gap', known: 0 });
      expect(await chunk(3)).toMatchObject({ added: 1 });
      expect(await chunk(4)).toMatchObject({ added: 1, pending: 2 });
    },
    without: [{ script: 'id-add', cure: 'ids, a chunk that is missing', change: 'never' }],
  },

  'an add that is sent twice adds once': {
    async play() {
      const scene = await givenIds();
      await scene.add(['a'], 1);
      expect(await scene.add(['a'], 1)).toMatchObject({ pending: 1 });
    },
    without: [{ script: 'id-add', cure: 'ids, numbered adds', change: 'never' }],
  },

  'a resume of an attempt that is not the last gets nothing, also when the last ran out too': {
    async play() {
      const { scene, task } = await runOut();
      await scene.resume(task);
      moveClock(TIMEOUT_MS);
      expect(await scene.resume(task)).toMatchObject({ verdict: 'none' });
    },
    without: [{ script: 'id-resume', cure: 'ids, the attempt in resume' }],
  },

  'a task whose time has not run out cannot be resumed': {
    async play() {
      const scene = await givenIds(['a']);
      const task = await scene.take();
      moveClock(TIMEOUT_MS - 1_000);
      expect(await scene.resume(task)).toMatchObject({ verdict: 'none' });
    },
    without: [{ script: 'id-resume', cure: 'ids, the time in resume' }],
  },

  'after the clock went back by an hour, the task of a dead consumer is offered and resumed in time':
    {
      async play() {
        const scene = await givenIds(['a']);
        const task = await scene.take();
        moveClock(-3_600_000);
        expect(await scene.pull()).toMatchObject({ verdict: 'processing' });
        moveClock(TIMEOUT_MS);
        expect(await scene.pull()).toMatchObject({ verdict: 'timedout' });
        expect(await scene.resume(task)).toMatchObject({ verdict: 'ready' });
      },
      without: [{ script: 'id-pull', cure: 'ids, the clock back' }],
    },

  'a consumer that lost a task cannot fail it for the new owner': {
    async play() {
      const { scene, task } = await runOut();
      await scene.resume(task);
      expect(await scene.fail(task)).toEqual({ verdict: 'late' });
      expect(await scene.done({ number: 1, attempt: 2 })).toEqual({ verdict: 'counted' });
    },
    without: [{ script: 'id-settle', cure: 'ids, failures of the current attempt' }],
  },

  'endless adds starve no task that timed out': {
    async play() {
      const { scene, task } = await runOut();
      for (let i = 0; ; i += 1) {
        expect(i).toBeLessThan(9);
        await scene.add(['b']);
        const pulled = await scene.pull();
        if (pulled.verdict === 'timedout' && pulled.id === task.id) return;
        moveClock(TIMEOUT_MS / 4);
      }
    },
    without: [{ script: 'id-pull', cure: 'ids, overdue ones first', change: 'always' }],
  },

  'a task that nobody resumes hides neither pending tasks nor others that timed out': {
    async play() {
      const scene = await givenIds(['a', 'b', 'c']);
      await scene.take();
      await scene.take();
      moveClock(3 * TIMEOUT_MS);
      const seen = new Set<string>();
      for (let i = 0; i < 3; i += 1) {
        const pulled = await scene.pull();
        if ('id' in pulled) seen.add(pulled.id);
        moveClock(1);
      }
      expect(seen).toEqual(new Set(['a', 'b', 'c']));
    },
    without: [{ script: 'id-pull', cure: 'ids, offered in turn' }],
  },

  'in a unique queue an id is free again once its task is completed': {
    async play() {
      const { scene, task } = await runOut(true);
      expect(await scene.add(['a'])).toMatchObject({ added: 0 });
      await scene.fail(task);
      expect(await scene.add(['a'])).toMatchObject({ added: 1 });
    },
    without: [
      { script: 'id-settle', cure: 'ids, known until completed' },
      { script: 'id-add', cure: 'ids, known until completed, 2', change: 'always' },
    ],
  },

  'a consumer of a dropped queue touches no later queue of the same name': {
    async play() {
      const { scene, task } = await runOut();
      await scene.drop();
      await scene.commands.join('another', {}, TIMEOUT_MS);
      await scene.commands.add('another', { sender: 's', number: 1, keepMs: 1 }, ['b']);
      await scene.commands.pull('another');
      expect(await scene.done(task)).toEqual({ verdict: 'gone' });
      expect(await scene.drop()).toEqual({ verdict: 'gone' });
      expect(await scene.commands.inspect('another')).toMatchObject({ running: 1, completed: 0 });
    },
    without: [
      { script: 'id-settle', cure: 'ids, one incarnation', change: 'never' },
      { script: 'id-drop', cure: 'ids, one incarnation, 2', change: 'never' },
    ],
  },
};

playTraces('the cures of queues of ids', traces);
