import { ControlCommands, type Tended } from '@piecework/protocol';
import { expect } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import {
  append,
  back,
  failure,
  given,
  Hand,
  items,
  PRODUCER,
  popAll,
  type Scene,
  success,
  tickOnce,
} from '../support/given.js';
import { inspect, inspectQueue } from '../support/peek.js';
import { playTraces, type Trace } from '../support/trace.js';

/*
 * Short histories that broke an earlier protocol, each with the cure that the scripts have for it
 * (trace.ts says how they are played). docs/guarantees.md names them.
 */

useTestClock();

/** Pauses a request, and ticks until it sleeps. */
async function asleep(scene: Scene): Promise<ControlCommands> {
  const control = new ControlCommands(scene.connection, scene.id);
  await control.pause(scene.generation);
  await popAll(scene);
  for (let i = 0; i < 4; i += 1) {
    moveClock(30_000);
    await tickOnce(scene);
  }
  return control;
}

const traces: Record<string, Trace> = {
  // Read empty; append (mints nothing, as my permit counts); leave: 1 ready, no token.
  'an item appended while the last worker is about to leave gets a token when it leaves': {
    async play() {
      const scene = await given.filled({ items: 1, limit: 1 });
      const worker = new Hand(scene);
      const [only] = await worker.hold(1);
      await worker.settle([success(only!)]);
      expect(await worker.read(1)).toEqual([]);
      const { mint } = (await scene.request.append(scene.generation, PRODUCER, 1, items(1))) as {
        mint: number;
      };
      expect(mint).toBe(0);
      const left = await worker.settle([], { keep: 0 });
      expect(left.mint).toBe(1);
      await inspect(scene);
    },
    without: [{ script: 'settle', cure: 'top-up in leave' }],
  },

  // Push before leave: another pops, sees granted == limit and drops the token; the leave then counts
  // one that is gone: list empty, granted 0, out 1, ready 4. So: leave first, push second.
  'the token of a worker that leaves is counted before it can be popped': {
    async play() {
      const scene = await given.filled({ items: 5, limit: 1 });
      const { id, generation, queue } = scene;
      await popAll(scene);
      const leaver = new Hand(scene, 'leaver');
      const [first] = await leaver.hold(1);
      const left = await leaver.settle([success(first!)], { keep: 0 });
      await queue.push({ id, generation, ...left });
      expect((await inspect(scene)).out).toBe(1);
      expect(await popAll(scene)).toHaveLength(1);
      const heir = await new Hand(scene, 'heir').enter(1, [left.epoch]);
      expect(heir.permits).toBe(1);
      expect((await inspect(scene)).out).toBe(0);
    },
    without: [
      { script: 'settle', cure: 'top-up in leave' },
      { script: 'settle', cure: 'tokens counted by the leave' },
    ],
  },

  // A token that was popped by a worker that died, or never pushed: stall.
  'a token that was lost is minted again': {
    async play() {
      const scene = await given.sealed({ items: 2, limit: 1 });
      await popAll(scene);
      let tokens: string[] = [];
      for (let passed = 0; passed < 120_000 && tokens.length === 0; passed += 5_000) {
        moveClock(5_000);
        await tickOnce(scene);
        await inspectQueue(scene);
        tokens = await popAll(scene);
      }
      expect(tokens).toHaveLength(1);
      const heir = await new Hand(scene).enter(1, [tokens[0]!.split('~')[2]!]);
      expect(heir.permits).toBe(1);
    },
    without: [
      { script: 'tend', cure: 'token epochs', change: 'never' },
      { script: 'tend', cure: 'partial loss', change: 'never' },
      { script: 'tick', cure: 'token epochs, 2' },
    ],
  },

  // Tick A (tended early, frozen) writes after tick B and erases B's wait entry.
  'a tick that was frozen does not undo what a later one wrote': {
    async play() {
      const scene = await given.created({ limit: 1, producerLeaseMs: 3_600_000 });
      const { id, generation, queue, request } = scene;
      moveClock(21_000);
      const [frozen] = (await queue.tick('', '')).claims;
      const early = await request.tend(frozen!.generation, frozen!.passed);
      await append(scene, 2);
      moveClock(8_001);
      await tickOnce(scene);
      const waiting = await inspectQueue(scene);
      expect(waiting.wait).toMatchObject({ [id]: { priority: 50, mark: 1 } });
      expect(early).toMatchObject({ verdict: 'ok', before: '' });
      expect(await queue.writeBack(frozen!, early as never)).toBe('moved');
      expect((await inspectQueue(scene)).wait).toEqual(waiting.wait);
      expect((await inspectQueue(scene)).open).toEqual({ [id]: generation });
    },
    without: [{ script: 'write-back', cure: 'compare-and-set in write-back', change: 'never' }],
  },

  // Resumed by a process that dies at once, while a tend was under way that had read that it was paused.
  'a change that was announced during a tend is found by the next one': {
    async play() {
      const scene = await given.sealed({ items: 1, limit: 1 });
      const { id, generation, queue, request } = scene;
      const control = await asleep(scene);
      await queue.scheduleTend(id, generation, 0);
      const [claim] = (await queue.tick('', '')).claims;
      const early = await request.tend(generation, claim!.passed);
      await queue.scheduleTend(id, generation, 0, 60_000);
      await control.resume(generation);
      await queue.writeBack(claim!, { ...(early as never as Tended), next: 9_000_000_000_000 });
      moveClock(9_000);
      await tickOnce(scene);
      expect((await inspectQueue(scene)).wait).toMatchObject({ [id]: { priority: 50 } });
    },
    without: [{ script: 'schedule-tend', cure: 'a time behind a claim is not overwritten' }],
  },

  // One process announced that it resumes. Another one changed the limit, and a tend still read that it was paused: it
  // put the request off to its deadline. Then the first one resumed, and died.
  'a change that was announced is found in time, whatever was tended before it': {
    async play() {
      const scene = await given.sealed({ items: 1, limit: 1, deadlineMs: 3_600_000 });
      const { id, generation, queue } = scene;
      const control = await asleep(scene);
      await queue.scheduleTend(id, generation, 0, 60_000);
      await control.update(generation, { limit: 2 });
      await queue.scheduleTend(id, generation, 0);
      await tickOnce(scene);
      await control.resume(generation);
      moveClock(61_000);
      await tickOnce(scene);
      expect((await inspectQueue(scene)).wait).toMatchObject({ [id]: { priority: 50 } });
    },
    without: [
      { script: 'write-back', cure: 'a change that is announced is not put off', change: 'never' },
      { script: 'schedule-tend', cure: 'a change that is announced is not put off, 2' },
    ],
  },

  // A tend mints, the token is pushed, popped and lost: counted in this epoch, so no mark was set,
  // and the next tend was a minute away.
  'a token that a tend minted and somebody lost is missed within the audit period': {
    async play() {
      const scene = await given.sealed({ items: 1, limit: 1, attempts: 2 });
      await popAll(scene);
      const worker = new Hand(scene);
      const [only] = await worker.hold(1);
      await worker.settle([failure(only!, 100_000)], { keep: 0 });
      moveClock(22_000);
      await tickOnce(scene);
      moveClock(80_000);
      for (let i = 0; i < 10; i += 1) {
        await tickOnce(scene);
        if ((await popAll(scene)).length > 0) break;
        moveClock(1_000);
      }
      let passed = 0;
      for (let tokens = 0; tokens === 0 && passed < 120_000; passed += 1_000) {
        moveClock(1_000);
        await tickOnce(scene);
        tokens = (await popAll(scene)).length;
      }
      // The audit, a grace for the mark to pass, and a second for each of three ticks.
      expect(passed).toBeLessThanOrEqual(15_000 + 5_000 + 3_000);
    },
    without: [{ script: 'tend', cure: 'token epochs, of what a tend minted', change: 'never' }],
  },

  // A worker that does not serve the task pops a token: everybody else had to stop.
  'workers that serve a task continue when one that does not meets the request': {
    async play() {
      const scene = await given.filled({ items: 5, limit: 2, task: 'census', attempts: 2 });
      const server = new Hand(scene, 'server');
      await server.tryEnter(1, [1], ' census ');
      const [first] = await server.read(1);
      const other = new Hand(scene, 'other');
      expect(await other.tryEnter(1, [1], ' tax ')).toMatchObject({ verdict: 'unserved' });
      const settled = await server.settle([back(first!)], { keep: 1 });
      // No token: it would be met by the same one again.
      expect(settled).toMatchObject({ permits: 1, mint: 0 });
      expect(await server.take(1)).toHaveLength(1);
      expect(await server.tryEnter(1, [], ' census ')).toMatchObject({ permits: 2, mint: 0 });
    },
    without: [
      {
        script: 'settle',
        cure: 'a parked request does not stop workers that serve its task',
        change: {
          becomes: "v[4] == '1' or v[5] == '1' or heldUntil > at",
        },
      },
      { script: 'settle', cure: 'a parked request does not stop workers that serve its task, 2' },
    ],
  },
};

playTraces('a history of tokens that broke an earlier protocol', traces);
