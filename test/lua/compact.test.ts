/**
 * Requests that are submitted in one call, which needs one server for all keys.
 * @module-tag one-server
 */
import type { Entry } from '@piecework/protocol';
import type { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { loadScripts } from '../interleavings/scripts.js';
import { moveClock, useTestClock } from '../support/clock.js';
import { expand } from '../support/compact.js';
import {
  connected,
  failure,
  given,
  Hand,
  type Options,
  type Scene,
  success,
} from '../support/given.js';
import { peek } from '../support/peek.js';
import { isCompact, submitWhole } from '../support/whole.js';

/*
 * What happens to a compact request (lua/lib/compact.lua) and to the same one in its usual form is the same: what calls
 * answer, and what both forms say in the end.
 */

useTestClock();

const NOW = 1_800_000_000_000;

/** Scripts whose clock stands still. */
async function clockStands(): Promise<void> {
  const { client } = await connected();
  (await loadScripts(client as Parameters<typeof loadScripts>[0])).use();
  moveClock(NOW);
}

/** What one request went through, without what names it. */
async function lifeOf(options: Options, form: 'compact' | 'usual', values: readonly string[]) {
  const scene = await given.nothing();
  const { connection, request } = scene;
  const payloads = values.map((_, i) => `item ${i}`);
  const generation = await submitWhole(scene, options, 'call', payloads);
  const mine: Scene = { ...scene, generation };
  expect(await isCompact(mine)).toBe(true);
  if (form === 'usual') await expand(request);
  const seen: unknown[] = [await pictureOf(mine)];
  seen.push(await request.tend(generation, ''), await pictureOf(mine));
  const heard: string[] = [];
  const listener = (connection.client as Redis).duplicate();
  await listener.ssubscribe(request.keys.channel);
  listener.on('smessage', (_: string, message: string) => heard.push(message));
  const hand = new Hand(mine);
  const entered = await hand.enter(values.length, ['1'], 32);
  expect(await isCompact(mine)).toBe(form === 'compact');
  seen.push(entered, await pictureOf(mine));
  moveClock(5);
  const outcomes = entered.entries.map((entry, i) => outcomeOf(entry, values[i] as string));
  seen.push(await hand.trySettle(outcomes, { keep: 0 }));
  expect(await isCompact(mine)).toBe(form === 'compact');
  seen.push(await pictureOf(mine), await request.results('-', 9));
  // Both expire with the state, or are not there.
  const left = await Promise.all(keysOf(mine).map((key) => connection.client.pttl(key)));
  seen.push(left.map((ms) => Math.round(ms / 10_000)));
  await expect.poll(() => heard.length).toBe(1);
  listener.disconnect();
  moveClock(-5);
  return JSON.parse(
    JSON.stringify([seen, heard])
      .replaceAll(scene.id, 'ID')
      .replaceAll(scene.queue.keys.queue, 'QUEUE'),
  );
}

const keysOf = ({ request: { keys } }: Scene) => [keys.request, keys.work, keys.failed];

/** A value that is an error is the end of its sub-request. */
const outcomeOf = (entry: Entry, value: string) =>
  value.startsWith('{"message"') ? failure(entry, -1) : success(entry, value);

async function pictureOf(scene: Scene) {
  const { fields, consumers, now, ...picture } = await peek(scene);
  // The number of its last call is of no use once it is complete.
  const kept = Object.entries(fields).filter(([field]) => !field.startsWith('op:'));
  return { ...picture, fields: Object.fromEntries(kept.sort()) };
}

const ERROR = '{"message":"no"}';

const cases: Record<string, readonly [Options, readonly string[]]> = {
  'of one': [{}, ['"a"']],
  'of several, with a limit': [{ limit: 9, priority: 3 }, ['1', 'null', '"ä"']],
  'that keeps no results': [{ results: 'discard', retentionMs: 150_000 }, ['1', '2']],
  'of a task': [{ task: 'census', attempts: 3 }, ['{}']],
  'that is expedited': [{ expedite: true }, ['1']],
  'with results that are not short': [{}, [`"${'x'.repeat(3_000)}"`]],
  'of one that fails': [{}, [ERROR]],
  'of several of which some fail': [{ limit: 9 }, ['1', ERROR, '3']],
  'of which more fail than are tolerated': [
    { toleratedFailures: 1, onExceeded: 'cancel' },
    [ERROR, ERROR, '3'],
  ],
  'of which no more fail than are tolerated': [{ toleratedFailures: '50%' }, ['1', ERROR]],
  'that fails and keeps no results': [{ results: 'discard' }, [ERROR, '2']],
  'with many crashes allowed': [{ maxCrashes: 9, limit: 4 }, ['1', '2', '3', '4']],
};

describe('a compact request goes the way of any other', () => {
  for (const [which, [options, values]] of Object.entries(cases)) {
    it(which, async () => {
      await clockStands();
      const compact = await lifeOf(options, 'compact', values);
      expect(compact).toEqual(await lifeOf(options, 'usual', values));
    });
  }
});
