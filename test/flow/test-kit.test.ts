/**
 * `@piecework/testing`, as a user's test suite uses it.
 * @module-tag own-server
 */
import '@piecework/testing/vitest';
import { releasedScripts } from '@piecework/protocol/testing';
import {
  assertFailed,
  assertFailures,
  assertResults,
  assertSucceeded,
  fakeTask,
  RequestFailuresError,
  StuckError,
  startTestKit,
  type TestKit,
} from '@piecework/testing';
import { defineTask, InvalidOptionError, Piecework, Scheduler, Worker } from 'piecework';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { movedScripts } from '../../packages/testing/dist/moved-scripts.js';
import { buildScripts, scriptNames } from '../../scripts/lua-source.mjs';
import { gate, Log } from '../support/flow.js';
import { until } from '../support/until.js';

let kit: TestKit;
let pw: Piecework;
const HOUR_MS = 3_600_000;

beforeAll(async () => {
  kit = await startTestKit();
  pw = new Piecework({ redis: kit.redis });
});

afterAll(async () => {
  await pw.close();
  await kit.close();
});

const square = fakeTask<number, number>('square', (n) => n * n);

describe('drain', () => {
  test('runs a request to its end, delays and backoffs included, without waiting', async () => {
    square.reset();
    square.fails(new Error('busy'), { times: 2, when: (n) => n === 2 });
    const backoff = { type: 'fixed', delayMs: HOUR_MS } as const;
    const options = { task: 'square', delayMs: 24 * HOUR_MS, attempts: 3, backoff };
    const request = await pw.submit([1, 2, 3], options);
    const before = kit.clock.aheadMs;
    const outcome = await kit.drain(request, { handlers: [square.handler] });
    expect(outcome.counts).toMatchObject({ total: 3, succeeded: 3 });
    expect(kit.clock.aheadMs - before).toBeGreaterThanOrEqual(26 * HOUR_MS - 10_000);
    expect(kit.clock.aheadMs - before).toBeLessThanOrEqual(26 * HOUR_MS);
    const attempts = square.calls.filter(({ payload }) => payload === 2);
    expect(attempts.map(({ attempt, ended }) => [attempt, ended?.status])).toEqual([
      [1, 'failed'],
      [2, 'failed'],
      [3, 'succeeded'],
    ]);
    await expect(request).toHaveResults([1, 4, 9]);
  });

  test('throws with the failures listed', async () => {
    square.reset();
    square.fails(new RangeError('odd'), { when: (n) => n % 2 === 1 });
    const request = await pw.submit([1, 2, 3], { task: 'square' });
    const drained = kit.drain(request, { handlers: [square.handler] });
    const error = await drained.catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(RequestFailuresError);
    const { message, failures } = error as RequestFailuresError;
    expect(message).toBe(
      [
        `request ${request.id} failed: 1 succeeded, 2 failed of 3`,
        '  item 0 1: RangeError: odd',
        '  item 2 3: RangeError: odd',
      ].join('\n'),
    );
    expect(failures.map(({ index }) => index)).toEqual([0, 2]);
  });

  test('lets the workers of the program under test do it', async () => {
    square.reset();
    const queue = kit.queue();
    await using worker = new Worker({ redis: kit.redis, queue, handlers: [square.handler] });
    await worker.start();
    await using own = new Piecework({ redis: kit.redis, queue });
    const request = await own.submit([4], { task: 'square', delayMs: HOUR_MS });
    await kit.drain(request);
    expect(square.payloads).toEqual([4]);
  });

  test('says at once that nobody serves the task, or that the request is paused', async () => {
    const request = await pw.submit([1], { task: 'another' });
    const stuck = kit.drain(request, { handlers: [square.handler] });
    await expect(stuck).rejects.toThrow(StuckError);
    await expect(stuck).rejects.toThrow(/cannot end: 1 ready; .*another/);
    await request.pause();
    await expect(kit.drain(request)).rejects.toThrow(/paused/);
    await request.drop();
  });

  test('says that only its deadline would end it', async () => {
    const request = await pw.submit([1], { task: 'another', deadlineMs: HOUR_MS });
    const stuck = kit.drain(request, { handlers: [square.handler] });
    await expect(stuck).rejects.toThrow(
      /cannot end before its deadline, 20.*Z: 1 ready; .*another/,
    );
    await request.drop();
  });

  test('says what an open request waits for when its time is over', async () => {
    const open = await pw.open({ task: 'square' });
    const late = kit.drain(open.handle, { handlers: [square.handler], timeoutMs: 100 });
    await expect(late).rejects.toThrow(/has not ended within 100 ms: no items; .*/);
    await open.handle.drop();
  });

  test('refuses wrong options before it starts anything', async () => {
    const request = pw.request('never-submitted');
    const wrong = [
      kit.drain(request, { timeoutMs: 0 }),
      kit.drain(request, { handlers: [] }),
      kit.drain(undefined as never),
      assertSucceeded('an id' as never),
      kit.clock.advance(-1),
    ];
    for (const one of wrong) await expect(one).rejects.toThrow(InvalidOptionError);
    expect(() => square.fails(new Error(), { times: 0 })).toThrow(InvalidOptionError);
    await expect(kit.drain(request)).rejects.toThrow(/never-submitted/);
    await expect(startTestKit()).rejects.toThrow(/already open/);
  });
});

describe('the clock', () => {
  test('is what runAt and a deadline are compared by', async () => {
    await kit.clock.advance(2 * HOUR_MS);
    const now = await kit.clock.now();
    const request = await pw.submit([1], {
      ...{ task: 'square', runAt: now + 1_000, deadlineMs: 60_000 },
    });
    expect((await request.status()).deadline).toBeGreaterThan(now + 50_000);
    const over = pw.submit([1], { task: 'square', runAt: now + HOUR_MS, deadlineMs: 60_000 });
    await expect(over).rejects.toMatchObject({ field: 'deadlineMs' });
    await request.drop();
  });

  test('ends a deadline', async () => {
    const request = await pw.submit([1], { task: 'nobody', deadlineMs: HOUR_MS });
    await kit.clock.advance(HOUR_MS - 60_000);
    expect((await request.status()).status).toBe('sealed');
    await kit.clock.advance(60_000);
    expect(await request.completion()).toMatchObject({ status: 'failed', endReason: 'deadline' });
  });

  test('starts what is due on the way in the order of its time', async () => {
    square.reset();
    const queue = kit.queue();
    await using own = new Piecework({ redis: kit.redis, queue });
    await own.submit([2], { task: 'square', delayMs: 2 * HOUR_MS });
    await own.submit([1], { task: 'square', delayMs: HOUR_MS });
    await kit.clock.advance(3 * HOUR_MS);
    const worker = new Worker({
      redis: kit.redis,
      ...{ queue, concurrency: 1, handlers: [square.handler] },
    });
    await using started = await worker.start();
    await until(() => square.calls.length === 2);
    expect(started.running).toBeLessThanOrEqual(1);
    expect(square.payloads).toEqual([1, 2]);
  });

  test('makes an object of a Scheduler due', async () => {
    await using scheduler = new Scheduler<string>({ redis: kit.redis, name: kit.queue() });
    await scheduler.enqueue('wake up', (await kit.clock.now()) + HOUR_MS);
    const taken = { lockMs: 10_000 };
    expect(await scheduler.takeDue(taken)).toEqual([]);
    await kit.clock.advance(HOUR_MS);
    expect(await scheduler.takeDue(taken)).toMatchObject([{ object: 'wake up' }]);
  });

  test('ends the lease of a worker that is silent, and another worker takes over', async () => {
    const queue = kit.queue();
    await using own = new Piecework({ redis: kit.redis, queue });
    const logger = new Log() as never;
    const options = { redis: kit.redis, queue, maxBlockMs: 0, concurrency: 1, logger };
    const held = gate<string>();
    const stuck = defineTask<number>('stuck').handler(() => held.opened);
    await using first = new Worker({ ...options, handlers: [stuck] });
    await first.start();
    const request = await own.submit([1], { task: 'stuck' });
    await until(() => first.running === 1);
    const second = fakeTask<number, string>('stuck', () => 'second');
    await using other = new Worker({ ...options, handlers: [second.handler] });
    await other.start();
    await kit.clock.advance(45_000);
    await until(async () => (await request.status()).status === 'complete');
    held.open('first');
    expect(second.calls.length).toBe(1);
    await expect(request).toHaveResults(['second']);
  });
});

test('the moved scripts have the lines of the test build', () => {
  const moved = movedScripts(releasedScripts);
  const built = buildScripts({ clock: 'test' });
  const lines = ({ lua }: { lua: string }) => lua.split('\n').sort();
  for (const name of scriptNames) {
    const [own, wanted] = [lines(moved[name]), lines(built[name])];
    expect(own.filter((line) => !wanted.includes(line))).toEqual([]);
    // A script that reads no time has no `now` here, four lines.
    expect([0, 4]).toContain(wanted.length - own.length);
  }
  const hidden = { lua: "#!lua\nreturn redis.call('TIME')", sha: '' };
  expect(() => movedScripts({ hidden })).toThrow(/the script hidden reads the time/);
});

describe('checks', () => {
  test('by matchers and by functions agree, and say what they found', async () => {
    square.reset();
    square.fails(new RangeError('too large'), { when: (n) => n > 1 });
    const good = await pw.submit([1], { task: 'square' });
    const bad = await pw.submit([1, 2], { task: 'square' });
    await kit.drain(good, { handlers: [square.handler] });
    await kit.drain(bad, { handlers: [square.handler] }).catch(() => {});

    await expect(good).toHaveSucceeded();
    await assertSucceeded(good);
    await expect(bad).toHaveFailed();
    await assertFailed(bad);
    await expect(bad).not.toHaveSucceeded();
    await expect(bad).toHaveFailures({ 1: /large/ });
    await expect(bad).toHaveFailures({ 1: { name: 'RangeError', message: 'too' } });
    await expect(bad).toHaveFailures(1);
    await assertFailures(bad, { 1: 'too large' });
    await expect(bad).not.toHaveFailures({ 0: 'too large' });
    await expect(bad).not.toHaveFailures({ 1: { name: 'TypeError' } });
    await expect(good).toHaveFailures({});
    await assertResults(good, [1]);
    await expect(bad).toHaveResults([1]);

    await expect(expect(bad).toHaveSucceeded()).rejects.toThrow(
      /failed: 1 of 2 succeeded, 1 failed, 0 cancelled\n {2}item 1: RangeError: too large/,
    );
    await expect(assertSucceeded(bad)).rejects.toThrow(/item 1: RangeError: too large/);
    await expect(assertResults(good, [2])).rejects.toMatchObject({ actual: [1], expected: [2] });
    await expect(assertFailures(good, 1)).rejects.toThrow(/failures of request .*: none/);
  });

  test('do not take a request for ended that is not', async () => {
    const request = await pw.submit([1], { task: 'later', delayMs: HOUR_MS });
    await expect(assertSucceeded(request)).rejects.toThrow(/is not complete: .* 1 ready/);
    await expect(expect(request).toHaveResults([])).rejects.toThrow(/is not complete/);
    await request.drop();
  });
});

test('a fake of a task with a schema gets what the schema makes', async () => {
  const parsed = defineTask('parsed', { payload: z.object({ n: z.coerce.number() }) });
  const fake = fakeTask(parsed).returns('done');
  const request = await pw.submit([{ n: '7' }], { task: parsed });
  await kit.drain(request, { handlers: [fake.handler] });
  expect(fake.payloads).toEqual([{ n: 7 }]);
  expect(fake.calls[0]).toMatchObject({ index: 0, ended: { status: 'succeeded', value: 'done' } });
});
