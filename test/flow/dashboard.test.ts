/**
 * The dashboard on whatever the flow tests run: one server, a cluster, the ACL users of docs/operations.md.
 */
import { dashboard } from '@piecework/dashboard';
import { type FastifyInstance, fastify } from 'fastify';
import { IdQueue, RetryQueue } from 'piecework';
import { expect } from 'vitest';
import { type Flow, gate, numbers, test } from '../support/flow.js';
import { freshName } from '../support/given.js';
import { keysOf } from '../support/leaks.js';
import { until } from '../support/until.js';

async function served(flow: Flow, name = freshName('beside')): Promise<FastifyInstance> {
  const { redis, queue } = flow;
  const app = fastify({ forceCloseConnections: true });
  await app.register(dashboard, {
    ...{ redis, insecure: true, allowControl: true, queues: [{ name: queue }] },
    beside: { retryQueues: [name], schedulers: [name], idQueues: [name] },
  });
  await app.listen({ port: 0, host: '127.0.0.1' });
  flow.after(() => app.close());
  return app;
}

/** The first value of a view, or the problem instead. */
async function view(app: FastifyInstance, params: Record<string, string>) {
  const { port } = app.server.address() as { port: number };
  const ending = new AbortController();
  const url = `http://127.0.0.1:${port}/api/events?${new URLSearchParams(params)}`;
  const { body } = await fetch(url, { signal: ending.signal });
  let text = '';
  try {
    for await (const part of body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += part;
      const found = /event: (view|problem)\ndata: (.*)\n\n/.exec(text);
      if (found) return { event: found[1], ...JSON.parse(found[2] as string) };
    }
  } finally {
    ending.abort();
  }
  throw new Error('the stream has ended');
}

test('the dashboard shows and changes what its user may see', async ({ flow }) => {
  const { queue } = flow;
  const app = await served(flow);
  const held = gate();
  flow.after(() => held.open());
  const handler = (n: number) => {
    if (n === 1) throw new TypeError('one');
    return n === 2 ? held.opened : n;
  };
  await flow.worker({ handler, concurrency: 4 }).start();
  const { id } = await flow.producer().submit(numbers(6), { id: flow.id('shown') });
  const request = await until(async () => {
    const seen = await view(app, { view: 'request', queue, id });
    return seen.row?.counts.succeeded === 4 && seen.failures.length === 1 && seen;
  });
  expect(request).toMatchObject({
    row: { counts: { running: 1, failed: 1, total: 6 } },
    running: [{ index: 2 }],
    failures: [{ name: 'TypeError', message: 'one' }],
    options: { priority: 50 },
    generations: [{ redriven: 0 }],
  });
  await until(async () => (await view(app, { view: 'overview', queue })).busiest.length === 1);
  await until(async () => (await view(app, { view: 'workers', queue })).total === 1);
  await until(async () => (await view(app, { view: 'errors', queue })).errors.length === 1);
  expect(await view(app, { view: 'requests', queue })).toMatchObject({ rows: [{ id }] });

  const host = `127.0.0.1:${(app.server.address() as { port: number }).port}`;
  const post = (action: string, body: object) =>
    app.inject({
      method: 'POST',
      url: `/api/control/${action}`,
      headers: { 'content-type': 'application/json', host, origin: `http://${host}` },
      payload: JSON.stringify({ queue, ...body }),
    });
  for (const [action, body] of [
    ['update', { id, limit: 3 }],
    ['pause', { id }],
    ['resume', { id }],
  ] as const)
    expect([action, (await post(action, body)).statusCode]).toEqual([action, 200]);
  held.open();
  await flow.complete(id);
  const results = await app.inject({ url: '/api/results', query: { queue, id } });
  expect(results.json().rows).toHaveLength(6);
});

test('the dashboard looks at the queues beside requests', async ({ flow }) => {
  const { redis } = flow;
  const name = freshName('beside');
  const app = await served(flow, name);
  const ids = await IdQueue.join(name, { redis });
  flow.after(() => ids.drop().then(() => ids.close()));
  await ids.add(['a', 'b']);
  const retry = new RetryQueue({ redis, name });
  flow.after(async () => {
    await retry.drop();
    await retry.close();
    // The numbers of its callers, which expire.
    const { client } = flow.connection;
    for (const key of await keysOf(client, name)) await client.unlink(key);
  });
  await retry.put(1);
  for await (const item of retry.items()) {
    await item.discard(new Error('no'));
    break;
  }
  const { queues } = await view(app, { view: 'beside' });
  expect(queues).toMatchObject([
    { kind: 'retry queue', problem: '', failures: [{ message: 'Error: no' }] },
    { kind: 'scheduler', problem: '' },
    { kind: 'id queue', problem: '', counts: [{ label: 'pending', n: 2 }, {}, {}, {}] },
  ]);
});
