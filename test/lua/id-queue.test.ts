import { afterEach, describe, expect, it } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import { connected, freshName } from '../support/given.js';
import { givenIds, type IdScene, idFaultsOf, TIMEOUT_MS } from '../support/given-ids.js';
import { keysOf } from '../support/leaks.js';

useTestClock();

let scene: IdScene;

afterEach(async () => {
  expect(idFaultsOf(await scene.picture())).toEqual([]);
  await scene.drop();
  expect(await keysOf(scene.connection.client, scene.commands.keys.name)).toEqual([]);
});

const given = async (...args: Parameters<typeof givenIds>) => {
  scene = await givenIds(...args);
  return scene;
};

describe('id-join', () => {
  it('creates a queue with what was asked for, or with the defaults', async () => {
    const { commands } = await given([], { unique: true, timeoutMs: 5 });
    expect(await commands.join('later', {}, 7)).toEqual({
      verdict: 'joined',
      incarnation: 'life',
      timeoutMs: 5,
      unique: true,
    });
    await scene.drop();
    expect(await commands.join('life', {}, 7)).toEqual({
      verdict: 'joined',
      incarnation: 'life',
      timeoutMs: 7,
      unique: false,
    });
  });

  it('says with which options it is there when others are asked for', async () => {
    const { commands } = await given([], { timeoutMs: 5 });
    const there = { verdict: 'differs', timeoutMs: 5, unique: false };
    expect(await commands.join('later', { timeoutMs: 6 }, 7)).toEqual(there);
    expect(await commands.join('later', { unique: true }, 7)).toEqual(there);
    expect(await commands.join('later', { timeoutMs: 5, unique: false }, 7)).toMatchObject({
      verdict: 'joined',
    });
  });
});

describe('id-add', () => {
  it('keeps the order, and the same id twice', async () => {
    await given();
    expect(await scene.add(['b', 'a'])).toEqual({ verdict: 'ok', pending: 2, added: 2 });
    expect(await scene.add(['a'])).toEqual({ verdict: 'ok', pending: 3, added: 1 });
    expect((await scene.picture()).pending).toEqual(['b', 'a', 'a']);
  });

  it('adds nothing for a chunk that comes again, or behind a later one', async () => {
    await given();
    await scene.add(['a'], 1);
    expect(await scene.add(['a'], 1)).toEqual({ verdict: 'ok', pending: 1, added: 0 });
    await scene.add(['c'], 3);
    expect(await scene.add(['b'], 2)).toEqual({ verdict: 'ok', pending: 2, added: 0 });
    expect(await scene.add(['a'], 1, 'another')).toMatchObject({ added: 1 });
  });

  it('forgets the numbers of a sender that was silent for long', async () => {
    await given();
    await scene.add(['a'], 5);
    moveClock(59_000);
    await scene.add(['b'], 1, 'another');
    expect((await scene.picture()).senders).toEqual(['sender', 'another']);
    moveClock(1_000);
    await scene.add(['c'], 2, 'another');
    const { senders, state } = await scene.picture();
    expect(senders).toEqual(['another']);
    expect(state).not.toHaveProperty('sent:sender');
    expect(state).toHaveProperty('sent:another', '2');
  });

  it('in a unique queue adds an id once until it is completed', async () => {
    await given(['a', 'b', 'a'], { unique: true });
    expect((await scene.picture()).pending).toEqual(['a', 'b']);
    const task = await scene.take();
    expect(await scene.add(['a'])).toEqual({ verdict: 'ok', pending: 1, added: 0 });
    moveClock(TIMEOUT_MS);
    expect(await scene.add(['a'])).toMatchObject({ added: 0 });
    await scene.done(task);
    expect(await scene.add(['a', 'b'])).toEqual({ verdict: 'ok', pending: 2, added: 1 });
  });
});

describe('id-pull', () => {
  it('hands out what is pending, in order, then says that all of it is in hands, then none', async () => {
    await given(['a', 'b:1:2', 'ö\n']);
    const tasks = [await scene.take(), await scene.take(), await scene.take()];
    expect(tasks.map(({ id, number, attempt }) => [id, number, attempt])).toEqual([
      ['a', 1, 1],
      ['b:1:2', 2, 1],
      ['ö\n', 3, 1],
    ]);
    expect(await scene.pull()).toMatchObject({ verdict: 'processing' });
    for (const task of tasks) await scene.done(task);
    const none = await scene.pull();
    expect(none).toMatchObject({ verdict: 'none' });
    expect(await scene.inspect()).toMatchObject({ pending: 0, running: 0, completed: 3 });
  });

  it('offers what ran out, those in turn', async () => {
    await given(['a', 'b']);
    await scene.take();
    await scene.take();
    moveClock(TIMEOUT_MS - 1_000);
    expect(await scene.pull()).toMatchObject({ verdict: 'processing' });
    moveClock(5_000);
    for (const id of ['a', 'b', 'a', 'b']) {
      expect(await scene.pull()).toMatchObject({ verdict: 'timedout', id, attempt: 1 });
      moveClock(1);
    }
  });

  it('hands out pending ones before those that ran out', async () => {
    await given(['a', 'b']);
    await scene.take();
    moveClock(2 * TIMEOUT_MS - 1_000);
    expect(await scene.take()).toMatchObject({ id: 'b' });
    expect(await scene.pull()).toMatchObject({ verdict: 'timedout', id: 'a' });
  });

  it('offers one that is overdue by another timeout before pending ones, once per timeout', async () => {
    await given(['a', 'b', 'c', 'd', 'e']);
    await scene.take();
    moveClock(2 * TIMEOUT_MS);
    expect(await scene.pull()).toMatchObject({ verdict: 'timedout', id: 'a' });
    expect(await scene.take()).toMatchObject({ id: 'b' });
    moveClock(TIMEOUT_MS - 1_000);
    expect(await scene.take()).toMatchObject({ id: 'c' });
    moveClock(1_000);
    expect(await scene.pull()).toMatchObject({ verdict: 'timedout', id: 'a' });
    expect(await scene.take()).toMatchObject({ id: 'd' });
  });
});

describe('id-resume', () => {
  it('gives one of many who ask a new attempt with the whole time, and the others nothing', async () => {
    await given(['a']);
    const task = await scene.take();
    moveClock(TIMEOUT_MS);
    const replies = await Promise.all(Array.from({ length: 9 }, () => scene.resume(task)));
    const [got, ...others] = replies.sort((a, b) => b.verdict.localeCompare(a.verdict));
    expect(got).toMatchObject({ verdict: 'ready', id: 'a', number: 1, attempt: 2 });
    expect(others.map(({ verdict }) => verdict)).toEqual(Array(8).fill('none'));
    moveClock(TIMEOUT_MS - 1_000);
    expect(await scene.pull()).toMatchObject({ verdict: 'processing' });
    moveClock(1_000);
    expect(await scene.pull()).toMatchObject({ verdict: 'timedout', attempt: 2 });
  });

  it('gives nothing of what has not run out, is done, or never was', async () => {
    await given(['a']);
    const task = await scene.take();
    expect(await scene.resume(task)).toMatchObject({ verdict: 'none' });
    expect(await scene.resume({ number: 2, attempt: 1 })).toMatchObject({ verdict: 'none' });
    moveClock(TIMEOUT_MS);
    expect(await scene.resume({ number: 1, attempt: 2 })).toMatchObject({ verdict: 'none' });
    await scene.done(task);
    expect(await scene.resume(task)).toMatchObject({ verdict: 'none' });
  });
});

describe('id-settle', () => {
  /** A task that another has resumed. */
  async function resumed() {
    await given(['a'], { unique: true });
    const task = await scene.take();
    moveClock(TIMEOUT_MS);
    const again = { number: 1, attempt: 2 };
    expect(await scene.resume(task)).toMatchObject(again);
    return { task, again };
  }

  it('counts a success once', async () => {
    const { again } = await resumed();
    expect(await scene.done(again)).toEqual({ verdict: 'counted' });
    expect(await scene.done(again)).toEqual({ verdict: 'late' });
    expect(await scene.inspect()).toMatchObject({ running: 0, completed: 1, failures: 0 });
  });

  it('counts a success of an earlier attempt, and then none of the current one', async () => {
    const { task, again } = await resumed();
    expect(await scene.done(task)).toEqual({ verdict: 'counted' });
    expect(await scene.fail(again)).toEqual({ verdict: 'late' });
    expect(await scene.inspect()).toMatchObject({ running: 0, completed: 1, failures: 0 });
  });

  it('counts a failure of the current attempt alone, also when its time ran out', async () => {
    const { task, again } = await resumed();
    expect(await scene.fail(task)).toEqual({ verdict: 'late' });
    moveClock(3 * TIMEOUT_MS);
    expect(await scene.fail(again, 'why')).toEqual({ verdict: 'counted' });
    expect(await scene.fail(again)).toEqual({ verdict: 'late' });
    expect(await scene.inspect(0, 1)).toMatchObject({
      ...{ running: 0, completed: 1, failures: 1 },
      failed: [{ id: 'a', key: '1-2', message: 'why' }],
    });
  });

  it('counts nothing of an attempt that never was', async () => {
    const { again } = await resumed();
    for (const key of [
      { ...again, attempt: 3 },
      { ...again, number: 7 },
    ]) {
      expect(await scene.done(key)).toEqual({ verdict: 'late' });
      expect(await scene.fail(key)).toEqual({ verdict: 'late' });
    }
    expect(await scene.inspect()).toMatchObject({ running: 1, completed: 0 });
  });

  it('keeps the latest hundred failures', async () => {
    await given(Array.from({ length: 103 }, (_, i) => `id ${i}`));
    for (let i = 0; i < 103; i += 1) await scene.fail(await scene.take(), `message ${i}`);
    const inspected = await scene.inspect(0, 200);
    if (inspected.verdict !== 'ok') throw new Error(inspected.verdict);
    expect(inspected.failures).toBe(103);
    expect(inspected.failed).toHaveLength(100);
    expect(inspected.failed[0]).toMatchObject({ id: 'id 102', key: '103-1' });
    expect(inspected.failed[99]).toMatchObject({ id: 'id 3', message: 'message 3' });
    expect(await scene.inspect(99, 1)).toMatchObject({ failed: [{ id: 'id 3' }] });
    expect(await scene.inspect(100, 1)).toMatchObject({ failed: [] });
  });
});

describe('id-drop', () => {
  it('leaves nothing, and every later call learns that the queue is gone', async () => {
    await given(['a', 'b'], { unique: true });
    const task = await scene.take();
    await scene.fail(task);
    expect(await scene.drop()).toEqual({ verdict: 'dropped' });
    const { client } = await connected();
    expect(await keysOf(client, scene.commands.keys.name)).toEqual([]);
    const gone = { verdict: 'gone' };
    expect(await scene.add(['a'])).toEqual(gone);
    expect(await scene.pull()).toEqual(gone);
    expect(await scene.resume(task)).toEqual(gone);
    expect(await scene.done(task)).toEqual(gone);
    expect(await scene.inspect()).toEqual(gone);
    expect(await scene.drop()).toEqual(gone);
  });

  it('leaves a later queue of the name alone', async () => {
    await given(['a']);
    await scene.drop();
    await scene.commands.join('another', {}, TIMEOUT_MS);
    expect(await scene.add(['b'])).toEqual({ verdict: 'gone' });
    expect(await scene.drop()).toEqual({ verdict: 'gone' });
    expect(await scene.commands.inspect('another')).toMatchObject({ verdict: 'ok', pending: 0 });
    await scene.commands.drop('another');
  });

  it('does not touch a queue of requests of the same name', async () => {
    await given(['a']);
    const { client } = await connected();
    const name = scene.commands.keys.name;
    await client.hset(`{${name}}:open`, 'id', 1);
    await scene.drop();
    expect(await keysOf(client, name)).toEqual([`{${name}}:open`]);
    await client.unlink(`{${name}}:open`);
  });
});

it('a pending id takes a bounded amount of memory', async () => {
  const ids = Array.from({ length: 10_000 }, (_, i) => freshName('id').slice(-8) + i);
  const bytes: number[] = [];
  for (const unique of [false, true]) {
    await given([], { unique });
    const { client } = await connected();
    for (let i = 0; i < ids.length; i += 500) await scene.add(ids.slice(i, i + 500));
    const { pending, known } = scene.commands.keys;
    const sizes = [pending, known].map((key) => client.call('MEMORY', 'USAGE', key, 'SAMPLES', 0));
    bytes.push((await Promise.all(sizes)).reduce((sum: number, n) => sum + Number(n), 0));
  }
  const perId = bytes.map((n) => n / ids.length);
  const text = ids.reduce((sum, id) => sum + id.length, 0) / ids.length;
  console.log(`bytes per pending id of ${text.toFixed(1)}: ${perId.map((n) => n.toFixed(1))}`);
  expect(perId[0]).toBeLessThan(text + 8);
  expect(perId[1]).toBeLessThan(3 * text + 100);
});
