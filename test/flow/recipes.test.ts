/**
 * The recipes for web frameworks in examples/, with the test kit.
 * @module-tag own-server
 */
import 'reflect-metadata';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import '@piecework/testing/vitest';
import type { INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Connection, requestKeys } from '@piecework/protocol';
import { startTestKit, type TestKit } from '@piecework/testing';
import { Piecework, type Task, Worker } from 'piecework';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AppModule, countWords, Texts, Words } from '../../examples/nestjs/app.module.js';
import { STARTS } from '../support/cli.js';
import { startExample } from '../support/examples.js';
import { gate, Log } from '../support/flow.js';
import type { Heard } from '../support/listen.js';
import { fromExamples, type Recipe, recipes } from '../support/recipes.js';
import { until } from '../support/until.js';

let kit: TestKit;
let worker: Worker;

beforeAll(async () => {
  kit = await startTestKit();
  const { countWords: task, words } = await fromExamples<{
    countWords: Task<string, number>;
    words: (text: string) => number;
  }>('http/task.mjs');
  const logger = new Log() as never;
  worker = new Worker({ redis: kit.redis, logger, handlers: [task.handler(words)], maxBlockMs: 0 });
  await worker.start();
});

afterAll(async () => {
  await worker.close();
  await kit.close();
});

/** How many connections follow a request. */
async function followersOf(connection: Connection, id: string): Promise<number> {
  const { channel } = requestKeys(id);
  const reply = await connection.client.call('PUBSUB', 'SHARDNUMSUB', channel);
  return (reply as [string, number])[1];
}

const post = (recipe: Recipe, items: unknown) =>
  recipe.fetch('/requests', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ items }),
  });

describe.each(recipes)('$name', (made) => {
  let recipe: Recipe;

  beforeAll(async () => {
    recipe = await made.open(kit.redis);
  });

  afterAll(() => recipe.close());

  test('submits, streams the progress, and sends the results as a download', async () => {
    const submitted = await post(recipe, ['a b c', 'd', '']);
    expect(submitted.status).toBe(202);
    const { id } = (await submitted.json()) as { id: string };
    expect(submitted.headers.get('location')).toBe(`/requests/${id}`);

    const events = await recipe.fetch(`/requests/${id}/events`);
    expect(events.headers.get('content-type')).toMatch(/^text\/event-stream/);
    const text = await events.text();
    const names = [...text.matchAll(/^event: (\w+)$/gm)].map(([, name]) => name);
    expect(new Set(names.slice(0, -1))).toEqual(new Set(['progress']));
    expect(names.at(-1)).toBe('end');
    const [, last = ''] = /event: end\ndata: (.*)\n\n$/.exec(text) ?? [];
    expect(JSON.parse(last)).toMatchObject({ status: 'succeeded', counts: { succeeded: 3 } });

    const results = await recipe.fetch(`/requests/${id}/results`);
    expect(results.headers.get('content-disposition')).toBe(`attachment; filename="${id}.ndjson"`);
    const lines = (await results.text()).trim().split('\n');
    expect(lines.map((line) => JSON.parse(line))).toEqual([
      { index: 0, status: 'succeeded', value: 3 },
      { index: 1, status: 'succeeded', value: 1 },
      { index: 2, status: 'succeeded', value: 0 },
      { done: true },
    ]);
    const status = await recipe.fetch(`/requests/${id}`);
    expect(await status.json()).toMatchObject({ id, status: 'complete', outcome: 'succeeded' });
  });

  test('answers wrong items, an unknown request and a Redis that is away by their status codes', async () => {
    const wrong = await post(recipe, ['a', 7]);
    expect(wrong.status).toBe(400);
    expect(await wrong.json()).toMatchObject({
      code: 'PAYLOAD',
      message: expect.stringMatching(/^item 1: /),
    });
    const missing = await post(recipe, undefined);
    expect(missing.status).toBe(400);
    expect(await missing.json()).toMatchObject({ code: 'INVALID_OPTION' });
    for (const path of ['', '/events', '/results']) {
      const unknown = await recipe.fetch(`/requests/unknown${path}`);
      expect(unknown.status).toBe(404);
      expect(await unknown.json()).toMatchObject({ code: 'NOT_FOUND' });
    }
    const away = await made.open('redis://127.0.0.1:1');
    try {
      const refused = await post(away, ['a']);
      expect(refused.status).toBe(503);
      expect(await refused.json()).toEqual({ code: 'CONNECTION', message: 'try again later' });
    } finally {
      await away.close();
    }
  });

  test('ends a stream when its client goes away', async () => {
    await using pw = new Piecework({ redis: kit.redis });
    const request = await pw.submit(['a'], { task: 'nobody' });
    const connection = Connection.open(kit.redis);
    const followed = () => followersOf(connection, request.id);
    const leaving = new AbortController();
    const { signal } = leaving;
    const { body } = await recipe.fetch(`/requests/${request.id}/events`, { signal });
    const reader = body?.getReader();
    const first = await reader?.read();
    expect(new TextDecoder().decode(first?.value)).toMatch(/^event: progress/);
    await until(async () => (await followed()) === 1);
    leaving.abort();
    await reader?.cancel().catch(() => {});
    await until(async () => (await followed()) === 0, { what: 'nobody follows the request' });
    await connection.close();
    await request.drop();
  });
});

describe.each(['express', 'fastify'])('the server of %s', (name) => {
  const start = (redis: string, PORT: number) =>
    startExample(`${name}/server.mjs`, [], redis, { PORT: String(PORT) });
  const addressOf = async ({ said }: Heard) =>
    (await until(() => /^(http:\S+)\n/m.exec(said.stderr), STARTS))[1] as string;
  const submit = (address: string) =>
    fetch(`${address}/requests`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ items: ['a'] }),
    });

  test('says that its port is taken, and ends', async () => {
    const other = createServer().listen(0);
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    const { code, stderr } = await start(kit.redis, port).finished;
    other.close();
    expect(code).toBe(1);
    expect(stderr).toMatch(/^server: listen EADDRINUSE: .+\nSet PORT to another port\.\n$/);
  });

  test('logs in one line that Redis is away', async () => {
    const server = start('redis://127.0.0.1:1', 0);
    const address = await addressOf(server);
    expect((await submit(address)).status).toBe(503);
    server.child.kill('SIGTERM');
    const { code, stdout, stderr } = await server.finished;
    expect(code).toBe(0);
    expect(stdout + stderr).toContain('CONNECTION: connect: ECONNREFUSED 127.0.0.1:1');
    expect(stdout + stderr).not.toContain('    at ');
    expect(stdout).not.toContain('"stack"');
  });

  test('ends its streams at the first signal, and then itself', async () => {
    await using pw = new Piecework({ redis: kit.redis });
    const request = await pw.submit(['a'], { task: 'nobody' });
    const server = start(kit.redis, 0);
    const address = await addressOf(server);
    const streams = ['events', 'results'].map(async (what) => {
      const answer = await fetch(`${address}/requests/${request.id}/${what}`);
      return answer.text();
    });
    const texts = Promise.allSettled(streams);
    const connection = Connection.open(kit.redis);
    await until(async () => (await followersOf(connection, request.id)) === 1);
    server.child.kill('SIGINT');
    const { code, stdout, stderr } = await server.finished;
    expect([code, stderr]).toEqual([0, `${address}\n`]);
    expect(stdout).not.toMatch(/"level":[456]0/);
    for (const text of await texts)
      expect(text).not.toMatchObject({ value: expect.stringMatching(/"done"|event: end/) });
    await connection.close();
    await request.drop();
  });
});

describe('NestJS', () => {
  const open = (queue: string, more = {}): Promise<INestApplicationContext> =>
    NestFactory.createApplicationContext(
      AppModule.with({ redis: kit.redis, queue, worker: { maxBlockMs: 0 }, ...more }),
      { logger: false, abortOnError: false },
    );

  test('runs the methods with @Task, and submits by what it injects', async () => {
    const app = await open(kit.queue());
    const request = await app.get(Texts).submit(['a b', 'c']);
    await kit.drain(request);
    await expect(request).toHaveResults([2, 1]);
    await app.close();
  });

  test('lets running handlers end when the application closes, and takes no more', async () => {
    const queue = kit.queue();
    const app = await open(queue, { worker: { maxBlockMs: 0, concurrency: 1 } });
    const [started, ended] = [gate(), gate<number>()];
    app.get(Words).count = (() => {
      started.open();
      return ended.opened;
    }) as never;
    await using pw = new Piecework({ redis: kit.redis, queue });
    const request = await pw.submit(['a', 'b'], { task: countWords });
    await started.opened;
    const closed = app.close();
    await until(async () => (await pw.admin.workers()).every(({ draining }) => draining));
    ended.open(1);
    await closed;
    expect((await request.status()).counts).toMatchObject({ succeeded: 1, ready: 1 });
    await request.drop();
  });

  test('only submits with worker: false, and does not start without Redis', async () => {
    const queue = kit.queue();
    const app = await open(queue, { worker: false });
    await using pw = new Piecework({ redis: kit.redis, queue });
    expect(await pw.admin.workers()).toEqual([]);
    await app.close();
    const away = open(queue, { redis: 'redis://127.0.0.1:1' });
    await expect(away).rejects.toMatchObject({ code: 'CONNECTION' });
  });
});
