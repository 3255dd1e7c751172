/**
 * Requests that are submitted in one call, which needs one server for all keys.
 * @module-tag one-server
 */
import type { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { loadScripts } from '../interleavings/scripts.js';
import { moveClock, useTestClock } from '../support/clock.js';
import { expand, settleWhole } from '../support/compact.js';
import { connected, given, Hand, type Options, type Scene, success } from '../support/given.js';
import { peek, snapshot } from '../support/peek.js';
import { compact, isCompact, submitWhole } from '../support/whole.js';

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
  const { compact, ...rest } = entered;
  expect(compact).toBe(form === 'compact' ? 1 : 0);
  seen.push(rest, await pictureOf(mine));
  moveClock(5);
  const outcomes = entered.entries.map((entry, i) => success(entry, values[i]));
  const complete = await request.settleCompact(
    scene.queue,
    generation,
    hand.name,
    hand.grantNo,
    outcomes,
  );
  expect(complete).toBe(form === 'compact' ? 'complete' : undefined);
  const settled = complete ? undefined : await hand.trySettle(outcomes, { keep: 0 });
  expect(settled ?? { verdict: 'complete', outcome: 'succeeded' }).toMatchObject({
    verdict: 'complete',
    outcome: 'succeeded',
  });
  seen.push(await pictureOf(mine), (await request.results('-', 9)).length);
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

const keysOf = ({ request: { keys } }: Scene) => [keys.request, keys.work, keys.results];

async function pictureOf(scene: Scene) {
  const { fields, consumers, now, ...picture } = await peek(scene);
  // The number of its last call is of no use once it is complete.
  const kept = Object.entries(fields).filter(([field]) => !field.startsWith('op:'));
  return { ...picture, fields: Object.fromEntries(kept.sort()) };
}

const cases: Record<string, readonly [Options, readonly string[]]> = {
  'of one': [{}, ['"a"']],
  'of several, with a limit': [{ limit: 9, priority: 3 }, ['1', 'null', '"ä"']],
  'that keeps no results': [{ results: 'discard', retentionMs: 150_000 }, ['1', '2']],
  'of a task': [{ task: 'census', attempts: 3 }, ['{}']],
  'that is expedited': [{ expedite: true }, ['1']],
  'with results that are not short': [{}, [`"${'x'.repeat(3_000)}"`]],
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

/** All that Redis has once a request is complete and finished, while another of its queue is open. */
async function leftBy(calls: 'one' | 'two'): Promise<unknown> {
  const scene = await compact();
  const { queue, id, generation } = scene;
  const other = await compact({ queue: queue.keys.queue });
  await new Hand(scene).holdAtOnce(3);
  const settled = await settleWhole(scene, { finishes: calls === 'one' ? 1 : 0 });
  expect(settled).toMatchObject({ left: '', complete: [1] });
  if (calls === 'two') await queue.finish(id, generation, 'succeeded');
  const text = JSON.stringify(await snapshot(scene));
  return JSON.parse(
    [id, other.id, queue.keys.queue].reduce((all, name, i) => all.replaceAll(name, `N${i}`), text),
  );
}

it('a call that also finishes leaves what the two calls leave', async () => {
  await clockStands();
  expect(await leftBy('one')).toEqual(await leftBy('two'));
});
