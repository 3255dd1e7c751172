import { expect } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import { givenIds, LIFE, TIMEOUT_MS } from '../support/given-ids.js';
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
  'ids, a number given again': {
    says: 'who has a task that the server forgot does not end the one that got its number',
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
    without: [{ script: 'id-settle', from: 'if forgotten or attempt', to: 'if attempt' }],
  },

  'ids, a chunk that is missing': {
    says: 'an add goes on from what the server has of it',
    async play() {
      const scene = await givenIds();
      const { name: _, ...keys } = scene.commands.keys;
      const chunk = (number: number) =>
        scene.commands.add(LIFE, { sender: 'many', number, keepMs: 60_000, first: 3 }, [
          `${number}`,
        ]);
      const putBack = await keepKeys(scene.connection, Object.values(keys));
      await chunk(3);
      await putBack();
      expect(await chunk(4)).toEqual({ verdict: 'gap', known: 0 });
      expect(await chunk(3)).toMatchObject({ added: 1 });
      expect(await chunk(4)).toMatchObject({ added: 1, pending: 2 });
    },
    without: [
      {
        script: 'id-add',
        from: 'if number > first and last < number - 1 then',
        to: 'if false then',
      },
    ],
  },

  'ids, numbered adds': {
    says: 'an add that is sent twice adds once',
    async play() {
      const scene = await givenIds();
      await scene.add(['a'], 1);
      expect(await scene.add(['a'], 1)).toMatchObject({ pending: 1 });
    },
    without: [{ script: 'id-add', from: 'if number <= last then', to: 'if false then' }],
  },

  'ids, the attempt in resume': {
    says: 'a resume of an attempt that is not the last gets nothing, also when the last ran out too',
    async play() {
      const { scene, task } = await runOut();
      await scene.resume(task);
      moveClock(TIMEOUT_MS);
      expect(await scene.resume(task)).toMatchObject({ verdict: 'none' });
    },
    without: [{ script: 'id-resume', from: 'tonumber(current) ~= attempt or', to: '' }],
  },

  'ids, the time in resume': {
    says: 'nobody resumes what is in time in another hand',
    async play() {
      const scene = await givenIds(['a']);
      const task = await scene.take();
      moveClock(TIMEOUT_MS - 1_000);
      expect(await scene.resume(task)).toMatchObject({ verdict: 'none' });
    },
    without: [
      {
        script: 'id-resume',
        from: "or tonumber(redis.call('ZADD', running, 'XX', 'INCR', 0, number) or 0) > at then",
        to: 'then',
      },
    ],
  },

  'ids, the clock back': {
    says: 'after the clock went back by an hour, what a dead hand holds is offered and resumed in time',
    async play() {
      const scene = await givenIds(['a']);
      const task = await scene.take();
      moveClock(-3_600_000);
      expect(await scene.pull()).toMatchObject({ verdict: 'processing' });
      moveClock(TIMEOUT_MS);
      expect(await scene.pull()).toMatchObject({ verdict: 'timedout' });
      expect(await scene.resume(task)).toMatchObject({ verdict: 'ready' });
    },
    without: [
      { script: 'id-pull', from: "redis.call('ZADD', running, at + timeoutMs, far)", to: '' },
    ],
  },

  'ids, failures of the current attempt': {
    says: 'whoever lost a task cannot fail it for who has it now',
    async play() {
      const { scene, task } = await runOut();
      await scene.resume(task);
      expect(await scene.fail(task)).toEqual({ verdict: 'late' });
      expect(await scene.done({ number: 1, attempt: 2 })).toEqual({ verdict: 'counted' });
    },
    without: [
      { script: 'id-settle', from: " or (kind == 'f' and attempt < current) then", to: ' then' },
    ],
  },

  'ids, overdue ones first': {
    says: 'endless adds starve no task that timed out',
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
    without: [
      {
        script: 'id-pull',
        from: 'if not number or since + timeoutMs > at then',
        to: 'if true then',
      },
    ],
  },

  'ids, offered in turn': {
    says: 'a task that nobody resumes hides neither what is pending nor what else timed out',
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
    without: [{ script: 'id-pull', from: "redis.call('ZADD', running, at, number)", to: '' }],
  },

  'ids, known until completed': {
    says: 'in a unique queue an id is free again once its task is completed',
    async play() {
      const { scene, task } = await runOut(true);
      expect(await scene.add(['a'])).toMatchObject({ added: 0 });
      await scene.fail(task);
      expect(await scene.add(['a'])).toMatchObject({ added: 1 });
    },
    without: [
      { script: 'id-settle', from: "redis.call('SREM', known, id)", to: '' },
      {
        script: 'id-add',
        from: "if v[2] == '0' or redis.call('SADD', known, ARGV[i]) == 1 then",
        to: 'if true then',
      },
    ],
  },

  'ids, one life': {
    says: 'who joined a queue that was dropped touches no later one of its name',
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
      { script: 'id-settle', from: 'if v[1] ~= life then', to: 'if false then' },
      {
        script: 'id-drop',
        from: "if redis.call('HGET', state, 'life') ~= life then",
        to: 'if false then',
      },
    ],
  },
};

playTraces('the cures of queues of ids', traces);
