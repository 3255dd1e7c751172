/**
 * A start that is refused leaves nothing: no connection, no timer, no entry in the registry.
 * @module-tag own-server
 * @module-tag processes
 */
import { ClosedError } from '@piecework/protocol';
import { Redis } from 'ioredis';
import { DelayedTasks } from 'piecework';
import { describe, expect } from 'vitest';
import { type Flow, numbers, test } from '../support/flow.js';
import { startProgram } from '../support/processes.js';
import { startOwnRedis } from '../support/redis.js';

/** A server with a user `limited` who has the rights of `rules`. */
async function limited(flow: Flow, ...rules: string[]) {
  const server = await startOwnRedis();
  flow.after(() => server.close());
  const root = new Redis(server.url);
  flow.after(() => root.disconnect());
  await root.call('ACL', 'SETUSER', 'limited', 'reset', 'on', '>pw', '&*', '+@all', ...rules);
  return { root, redis: server.url.replace('//', '//limited:pw@') };
}

/** Entries of the workers of these queues. */
const registered = async (root: Redis, ...queues: string[]) =>
  (
    await Promise.all(
      queues.flatMap((queue) => [
        root.zcard(`{${queue}}:workers`),
        root.hlen(`{${queue}}:worker-info`),
      ]),
    )
  ).reduce((sum, n) => sum + n, 0);

describe('a process whose worker could not start ends by itself', () => {
  const CLOSED = 'CLOSED worker, whose start failed, is closed';
  const cases = [
    ['nothing listens', 'redis://127.0.0.1:1', /^CONNECTION .*nothing listens there/],
    ['its password is wrong', 'wrong', /^PASSWORD /],
    ['it lacks a right', 'limited', /^NO_RIGHT .*\+zadd/],
  ] as const;
  test.for(cases)('as %s', async ([, where, why], { flow }) => {
    const { root, redis } = await limited(flow, '~*', '-zadd');
    const url =
      where === 'limited' ? redis : where === 'wrong' ? redis.replace(':pw@', ':no@') : where;
    const program = startProgram(flow, 'refused-start', { redis: url, queue: flow.queue });
    const said = await program.said<{ codes: string[] }>();
    expect(said).toEqual({ codes: [expect.stringMatching(why), CLOSED], state: 'closed' });
    expect(await program.ended).toBe(0);
    expect(await registered(root, flow.queue)).toBe(0);
  });

  test('and leaves a connection that was passed in to the program', async ({ flow }) => {
    const { root, redis } = await limited(flow, '~*', '-zadd');
    const argument = { redis, isPassedIn: true, queue: flow.queue };
    const program = startProgram(flow, 'refused-start', argument);
    expect(await program.said()).toEqual({
      codes: [expect.stringMatching(/^NO_RIGHT /), CLOSED],
      ...{ state: 'closed', answer: 'PONG' },
    });
    expect(await program.ended).toBe(0);
    expect(await registered(root, flow.queue)).toBe(0);
  });
});

test('a worker that one shard refuses is registered with none', async ({ flow }) => {
  const [first, refused, last] = numbers(3).map((n) => `${flow.queue}.${n}`) as [
    string,
    string,
    string,
  ];
  const { root, redis } = await limited(flow, `~{${first}}:*`, `~{${last}}:*`);
  const worker = flow.worker({ redis, shards: 3, handler: () => 1 });
  await expect(worker.start()).rejects.toMatchObject({ code: 'NO_RIGHT' });
  expect(await registered(root, first, refused, last)).toBe(0);
  expect(worker.health().state).toBe('closed');
  await expect(worker.start()).rejects.toBeInstanceOf(ClosedError);
});

test('a worker of several queues that one of them refuses takes nothing from the others', async ({
  flow,
}) => {
  const [allowed, refused] = [`${flow.queue}-a`, `${flow.queue}-b`];
  const { root, redis } = await limited(flow, `~{${allowed}}:*`);
  await using tasks = new DelayedTasks({ redis });
  const worker = tasks.worker({
    ...{ queues: [allowed, refused], handlers: { note: () => {} } },
    logger: flow.log as never,
  });
  await expect(worker.start()).rejects.toMatchObject({ code: 'NO_RIGHT' });
  expect(worker.health().map(({ state }) => state)).toEqual(['closed', 'closed']);
  expect(await registered(root, allowed, refused)).toBe(0);
  await expect(worker.start()).rejects.toBeInstanceOf(ClosedError);
});
