/**
 * What a worker's log says of its work, by a logger as users have it.
 */
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { WorkerOptions } from '@piecework/worker';
import { Admin, type HandlerContext, UnrecoverableError } from 'piecework';
import { describe, expect } from 'vitest';
import { jsonLines } from '../support/command-line.js';
import { deadHolder, gate, numbers, test } from '../support/flow.js';
import { listen } from '../support/listen.js';
import { until } from '../support/until.js';

type Level = 'warn' | 'debug' | 'trace';

// The logger of the worker package, which the tests do not depend on themselves.
const { pino } = createRequire(new URL('../../packages/worker/package.json', import.meta.url))(
  'pino',
) as { pino: (options: object, to: Writable) => NonNullable<WorkerOptions['logger']> };

interface Line {
  readonly level: number;
  readonly msg: string;
  readonly requestId?: string;
  readonly more?: number;
}

const TOO_OFTEN = 'sub-requests failed, as their workers ended too often';
const WARN = 40;
const DEBUG = 20;

/** A logger of this level, and the lines that it wrote. */
function logging(level: Level) {
  const lines: Line[] = [];
  const write = (chunk: Buffer, _: unknown, done: () => void) => {
    lines.push(JSON.parse(String(chunk)) as Line);
    done();
  };
  const saying = (what: string) => lines.filter(({ msg }) => msg === what);
  return { lines, saying, logger: pino({ level }, new Writable({ write })) };
}

const fails = (payload: string) => {
  throw new TypeError(`no ${payload.length}`);
};

/** A program of a user: one sub-request, and a worker that has no logger, or one of its own. */
const program = (redis: unknown, queue: string, logger: string) => `
  import { Piecework, Worker } from 'piecework';
  import { createRequire } from 'node:module';
  const pino = createRequire('${new URL('../../packages/worker/package.json', import.meta.url)}')('pino');
  const [redis, queue] = [${JSON.stringify(redis)}, ${JSON.stringify(queue)}];
  const handler = (n, ctx) => {
    ctx.log.debug('a detail');
    ctx.log.info('step one is done');
    ctx.log.warn('step two is missing');
  };
  const worker = new Worker({ redis, queue, handler, ${logger} });
  await worker.start();
  const pw = new Piecework({ redis, queue });
  const request = await pw.submit([1]);
  await request.completion();
  await request.drop();
  await pw.close();
  await worker.close();
`;

async function loggedBy(text: string) {
  const child = spawn(process.execPath, ['--input-type=module', '-e', text], {
    cwd: fileURLToPath(new URL('../..', import.meta.url)),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const { stdout, stderr } = await listen(child).finished;
  return jsonLines<Line>(stdout + stderr);
}

describe('the log of a worker without a logger', () => {
  test('has what handlers log from level info on, and nothing that the worker says at that level', async ({
    flow,
  }) => {
    const lines = await loggedBy(program(flow.redis, flow.queue, ''));
    // On a busy machine the worker may have warnings of its own.
    const shown = lines.filter(({ msg, level }) => msg.startsWith('step') || level < WARN);
    expect(shown).toMatchObject([
      { level: 30, worker: expect.any(String), index: 0, msg: 'step one is done' },
      { level: WARN, index: 0, msg: 'step two is missing' },
    ]);
  });

  test('leaves the level of both to a logger that is given', async ({ flow }) => {
    const logger = "logger: pino({ level: 'warn' })";
    const lines = await loggedBy(program(flow.redis, flow.queue, logger));
    const shown = lines.filter(({ msg, level }) => msg.startsWith('step') || level < WARN);
    expect(shown.map(({ msg }) => msg)).toEqual(['step two is missing']);
  });
});

describe('the log of a worker', () => {
  test('never has payloads, results or checkpoints, at any level', async ({ flow }) => {
    const { lines, logger } = logging('trace');
    const secrets = ['a-secret-payload', 'a-secret-result', 'a-secret-checkpoint'];
    const handler = async (payload: string, ctx: HandlerContext) => {
      ctx.log.info('a line of the handler');
      ctx.checkpoint({ at: secrets[2] });
      if (ctx.attempt === 1 || ctx.index === 1) throw new Error('no');
      return `${secrets[1]} of ${payload.length}`;
    };
    const worker = flow.worker({ handler, logger, slowMs: 1, settleDelayMs: 0 });
    await worker.start();
    const { id } = await flow.producer().submit([secrets[0], secrets[0]], { attempts: 2 });
    await flow.complete(id);
    await worker.close();
    expect(lines.length).toBeGreaterThan(5);
    const text = JSON.stringify(lines);
    expect(text).toContain('a line of the handler');
    for (const secret of secrets) expect(text).not.toContain(secret);
  });

  test('has a warning for each failed sub-request, without its payload', async ({ flow }) => {
    const { lines, saying, logger } = logging('warn');
    await flow.worker({ handler: fails, logger }).start();
    const { id } = await flow.producer().submit(['a-secret'], { attempts: 3, backoff: 0 });
    await flow.complete(id);
    expect(saying('sub-request failed')).toEqual([
      expect.objectContaining({
        ...{ level: WARN, queue: flow.queue, requestId: id, index: 0, attempt: 3 },
        ...{ error: 'TypeError', ranMs: expect.any(Number) },
        err: expect.objectContaining({ message: 'no 8', stack: expect.stringContaining('no 8') }),
      }),
    ]);
    expect(lines).toHaveLength(1);
    expect(JSON.stringify(lines)).not.toContain('secret');
  });

  test('has the class of the thrown value, and a stack only if the value has one', async ({
    flow,
  }) => {
    const { saying, logger } = logging('warn');
    const thrown = ['a text', { code: 5 }, new UnrecoverableError('no more')];
    const handler = (n: number) => Promise.reject(thrown[n]);
    await flow.worker({ handler, logger, concurrency: 1 }).start();
    const { id } = await flow.producer().submit(numbers(3));
    await flow.complete(id);
    const said = saying('sub-request failed') as unknown as { index: number; err: object }[];
    const errors = said.sort((a, b) => a.index - b.index).map(({ err }) => err);
    const plain = { type: 'Error', name: 'Error' };
    expect(errors).toEqual([
      { ...plain, message: 'a text', stack: 'Error: a text' },
      { ...plain, message: '{"code":5}', stack: 'Error: {"code":5}' },
      {
        ...{ type: 'UnrecoverableError', name: 'UnrecoverableError', code: 'UNRECOVERABLE' },
        ...{ message: 'no more', stack: expect.stringContaining('worker-log.test') },
      },
    ]);
  });

  test('has the course of a request at debug level, with each attempt that is retried', async ({
    flow,
  }) => {
    const { lines, saying, logger } = logging('debug');
    const handler = (n: number, { attempt }: { attempt: number }) => {
      if (n === 1 && attempt === 1) throw new Error('once');
    };
    await flow.worker({ handler, logger, concurrency: 5 }).start();
    const { id } = await flow.producer().submit(numbers(3), { attempts: 2, backoff: 0 });
    await flow.complete(id);
    await until(() => saying('request left here').length > 0);
    const about = { level: DEBUG, queue: flow.queue, requestId: id };
    expect(saying('request begun here')[0]).toMatchObject(about);
    expect(saying('attempt failed, another follows')).toMatchObject([
      { ...about, index: 1, attempt: 1, delayMs: 0, error: 'Error', err: { message: 'once' } },
    ]);
    expect(saying('sub-request runs again')).toMatchObject([
      { ...about, index: 1, attempt: 2, crashes: 0 },
    ]);
    const left = saying('request left here') as unknown as Record<string, number>[];
    const sum = (of: string) => left.reduce((n, line) => n + (line[of] ?? 0), 0);
    expect(['succeeded', 'retried', 'failed'].map(sum)).toEqual([3, 1, 0]);
    expect(lines.filter(({ level }) => level >= WARN)).toEqual([]);
  });

  test('has five lines of a kind in a flood, and the number of those left out', async ({
    flow,
  }) => {
    const { lines, saying, logger } = logging('warn');
    const worker = flow.worker({ handler: fails, logger });
    await worker.start();
    const { id } = await flow.producer().submit(Array.from({ length: 60 }, () => 'x'));
    await flow.complete(id);
    // Of a machine that took longer than a period, there is more than one.
    const failed = () => saying('sub-request failed').length;
    const counted = () => lines.reduce((n, { more = 0 }) => n + more, 0);
    await worker.close();
    expect(failed() + counted()).toBe(60);
    expect(failed() % 5).toBe(0);
    expect(lines.find(({ more }) => more)).toMatchObject({
      ...{ level: WARN, queue: flow.queue, error: 'TypeError' },
      msg: expect.stringMatching(/^\d+ more of: sub-request failed$/),
    });
  });

  test('has a warning when work of an ended worker is taken over', async ({ flow }) => {
    const producer = flow.producer();
    const { id } = await producer.submit(numbers(3));
    // It would tick as well.
    await producer.close();
    await deadHolder(flow, id);
    const { saying, logger } = logging('warn');
    await flow.worker({ handler: (n: number) => n, logger }).start();
    await flow.complete(id);
    expect(saying('took over what ended workers had')).toMatchObject([
      { level: WARN, queue: flow.queue, requestId: id, count: 3 },
    ]);
  });

  test('has a warning when sub-requests fail because their workers ended too often', async ({
    flow,
  }) => {
    const producer = flow.producer();
    const { id } = await producer.submit(numbers(5), { maxCrashes: 1 });
    await producer.close();
    await deadHolder(flow, id);
    const { saying, logger } = logging('warn');
    await flow.worker({ handler: (n: number) => n, logger }).start();
    await flow.complete(id);
    await until(() => saying(TOO_OFTEN).length > 0);
    expect(saying(TOO_OFTEN)).toMatchObject([
      { level: WARN, queue: flow.queue, requestId: id, count: 5, indexes: [0, 1, 2] },
    ]);
  });

  test('has a warning, as probes and the doctor do, for handlers that continue after their abort', async ({
    flow,
  }) => {
    const { saying, logger } = logging('warn');
    const over = gate();
    const worker = flow.worker({ handler: () => over.opened, logger, slowMs: 1, concurrency: 2 });
    await worker.start();
    const { id } = await flow.producer().submit(numbers(2), { attemptTimeoutMs: 20 });
    await flow.complete(id);
    const said = () =>
      saying('handler continues although it was asked to stop, and keeps its slot');
    await until(() => said().length === 2);
    expect(said()[0]).toMatchObject({ level: WARN, requestId: id, attempt: 1 });
    const held =
      /^2 of 2 slots are occupied by handlers that continue although they were asked to stop/;
    const health = { live: false, ready: false, why: [expect.stringMatching(held)] };
    expect(worker.health()).toMatchObject(health);
    await using admin = new Admin({ redis: flow.connection.client, queue: flow.queue });
    // Each tick updates the registry.
    const warned = async () =>
      (await admin.doctor()).find(({ what }) => what.includes(`${worker.id}: 2 of 2 slots`));
    await until(async () => (await warned())?.level === 'warning');
    over.open();
    await until(() => worker.health().ready);
  });

  test('has one warning for a handler that runs far longer than usual', async ({ flow }) => {
    const { saying, logger } = logging('warn');
    const over = gate();
    const handler = (n: number) => (n === 0 ? over.opened : undefined);
    const worker = flow.worker({ handler, logger, slowMs: 1, leaseMs: 1_000 });
    await worker.start();
    const { id } = await flow.producer().submit(numbers(3));
    const said = () => saying('handler runs far longer than usual');
    await until(() => said().length > 0);
    expect(said()).toMatchObject([
      { level: WARN, requestId: id, index: 0, attempt: 1, ranMs: expect.any(Number) },
    ]);
    // It checks for slow handlers ten times in a lease, and renews after a third of the lease.
    const lease = () =>
      flow.connection.client.hget(flow.request(id).keys.request, `lease:${worker.id}`);
    for (let renewals = 0; renewals < 2; renewals += 1) {
      const before = await lease();
      await until(async () => (await lease()) !== before);
    }
    over.open();
    await flow.complete(id);
    expect(said().filter((line) => 'index' in line && line.index === 0)).toHaveLength(1);
  });
});
