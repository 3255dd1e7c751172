/**
 * What Prometheus reads of workers, of a fleet and of a queue, and the number that a fleet is scaled by. Pages are read
 * by a parser that is not ours. test/metrics/main.mjs runs a real Prometheus.
 */
import { dashboard } from '@piecework/dashboard';
import { startRedis } from '@piecework/embedded';
import { FleetMetrics, QueueMetrics, scaleAnswer, WorkerMetrics } from '@piecework/metrics';
import { QueueCommands } from '@piecework/protocol';
import { fastify } from 'fastify';
import { Admin, serveHealth } from 'piecework';
import { describe, expect, it } from 'vitest';
import { coresOf } from '../../packages/cli/dist/processes/cores.js';
import { workOf } from '../../packages/metrics/dist/queues/work.js';
import { STARTS } from '../support/cli.js';
import { type CommandLine, test as cliTest, saysIn } from '../support/command-line.js';
import { type Flow, gate, numbers, test } from '../support/flow.js';
import { PrometheusPage } from '../support/prometheus.js';
import { until } from '../support/until.js';

const pageOf = async (metrics: { text(): Promise<string> }) =>
  new PrometheusPage(await metrics.text());

const pageAt = async (port: number) =>
  new PrometheusPage(await (await fetch(`http://127.0.0.1:${port}/metrics`)).text());

function admin(flow: Flow): Admin {
  const { redis, queue } = flow;
  const opened = new Admin({ redis, queue });
  flow.after(() => opened.close());
  return opened;
}

describe('a worker with metrics', () => {
  test('counts known work', async ({ flow }) => {
    const { queue } = flow;
    const metrics = new WorkerMetrics();
    const handler = (n: number) => {
      if (n === 1) throw new TypeError('always');
      return n;
    };
    await flow.worker({ handler, metrics, concurrency: 3 }).start();
    const { id } = await flow.producer().submit(numbers(6), {
      ...{ id: flow.id('known'), task: 'sum', attempts: 2, toleratedFailures: 1 },
    });
    await flow.complete(id);
    const page = await until(async () => {
      const read = await pageOf(metrics);
      return read.all('piecework_request_duration_seconds').length > 0 && read;
    });
    const labels = { queue, task: 'sum' };
    const ended = (outcome: string) =>
      page.one('piecework_attempts_total', { ...labels, outcome }).value;
    expect(['succeeded', 'failed', 'retried', 'returned'].map(ended)).toEqual([5, 1, 1, 0]);
    expect(page.one('piecework_failures_total', { ...labels, error: 'TypeError' }).value).toBe(2);
    expect(page.one('piecework_handler_duration_seconds', labels).count).toBe(7);
    expect(page.one('piecework_sub_request_waiting_seconds', labels).count).toBe(6);
    const took = page.one('piecework_request_duration_seconds', labels);
    expect(took).toMatchObject({ count: 1, labels: { outcome: 'succeeded' } });
    expect(took.sum).toBeGreaterThan(0);
    expect(page.one('piecework_settle_duration_seconds', { queue }).count).toBeGreaterThan(0);
    expect(page.one('piecework_worker_slots', { queue }).value).toBe(3);
    expect(page.one('piecework_worker_running', { queue }).value).toBe(0);
    expect(page.one('piecework_workers', { queue, ready: 'true' }).value).toBe(1);
    for (const { name, help, type } of page.families) {
      expect([name, help.length > 10]).toEqual([name, true]);
      expect([name, name.endsWith('_total')]).toEqual([name, type === 'COUNTER']);
    }
  });

  test('counts each request once, also where others come to it when it is complete', async ({
    flow,
  }) => {
    const { queue } = flow;
    const metrics = new WorkerMetrics();
    const handler = (n: number) => n;
    for (let i = 0; i < 2; i += 1) await flow.worker({ handler, metrics, concurrency: 3 }).start();
    const producer = flow.producer();
    const ids = numbers(40).map((n) => flow.id(`r${n}`));
    await Promise.all(ids.map((id) => producer.submit(numbers(5), { id, limit: 5 })));
    for (const id of ids) await flow.complete(id);
    const counted = async () =>
      (await pageOf(metrics)).all('piecework_request_duration_seconds', { queue })[0]?.count ?? 0;
    await until(async () => (await counted()) >= ids.length);
    // The queue has ended them all: no token leads there any more.
    const queueSide = admin(flow);
    await until(async () => (await queueSide.counts()).open === 0);
    expect(await counted()).toBe(ids.length);
  });

  test('keeps its labels bounded, and names no request', async ({ flow }) => {
    const { queue } = flow;
    const metrics = new WorkerMetrics();
    const handler = (n: number) => {
      throw Object.assign(new Error('no'), { name: n === 0 ? 'not a class' : `Kind${n}` });
    };
    await flow.worker({ handler, metrics }).start();
    const { id } = await flow.producer().submit(numbers(40), { id: flow.id('kinds') });
    await flow.complete(id);
    const page = await pageOf(metrics);
    const failures = page.all('piecework_failures_total', { queue });
    expect(failures).toHaveLength(31);
    expect(failures.find(({ labels }) => labels['error'] === 'other')?.value).toBe(10);
    for (let n = 0; n < 60; n++) metrics.watch(flow.worker({ handler })).task(`task${n}`);
    const tasks = (await pageOf(metrics)).all('piecework_handler_duration_seconds', { queue });
    // The first 50, among them that of requests without one, and 'other'.
    expect(tasks).toHaveLength(51);
    expect(await metrics.text()).not.toContain(id);
  });

  test('is served beside its health', async ({ flow }) => {
    const metrics = new WorkerMetrics();
    const worker = flow.worker({ handler: () => 0, metrics });
    expect(() => serveHealth(() => worker.health(), { prt: 1, port: 0 } as never)).toThrow(
      'prt: no such option; options: port, host, metrics',
    );
    await using server = await serveHealth(() => worker.health(), { port: 0, metrics });
    const page = await pageAt(server.port);
    expect(page.one('piecework_workers', { ready: 'false' }).value).toBe(1);
    const live = await fetch(`http://127.0.0.1:${server.port}/live`);
    expect(live.status).toBe(200);
    const other = await fetch(`http://127.0.0.1:${server.port}/other`);
    expect(await other.json()).toEqual({ error: 'there are /live, /ready, and /metrics' });
  });
});

describe('a queue', () => {
  test('has no free slots at workers that take no work', async ({ flow }) => {
    const { queue } = flow;
    const about = { pid: 1, host: 'h', tasks: '*', concurrency: 4, leftovers: 0, startedAt: 1 };
    const fleet = [
      ['works', { ...about, running: 3 }],
      ['idle', { ...about, running: 0, ready: false, why: ['no blocking connection'] }],
      ['ends', { ...about, running: 1, ready: false, why: ['no blocking connection'] }],
    ] as const;
    const commands = new QueueCommands(flow.connection, queue);
    for (const [id, info] of fleet) await commands.tick(id, JSON.stringify(info));
    const metrics = new QueueMetrics({ queues: { [queue]: admin(flow) } });
    const page = await pageOf(metrics);
    expect(page.one('piecework_queue_slots').value).toBe(5);
    const workers = (state: string) => page.one('piecework_queue_workers', { state }).value;
    expect(['alive', 'unready', 'draining', 'silent'].map(workers)).toEqual([1, 2, 0, 0]);
    const { body } = await scaleAnswer(metrics, new URLSearchParams());
    expect(JSON.parse(body)).toMatchObject({ slots: 5 });
    for (const [id] of fleet) await commands.deregister(id);
  });

  test('is read with what waits, what runs, and what it needs', async ({ flow }) => {
    const { queue } = flow;
    const held = gate();
    flow.after(() => held.open());
    const metrics = new QueueMetrics({ queues: { [queue]: admin(flow) } });
    const nothing = await pageOf(metrics);
    expect(nothing.one('piecework_queue_up').value).toBe(1);
    expect(nothing.one('piecework_queue_needed_slots').value).toBe(0);

    const { id } = await flow.producer().submit(numbers(200), {
      ...{ id: flow.id('waits'), priority: 15, task: 'slow', limit: 20 },
    });
    // A second passes between two reads of the queue.
    const page = await until(async () => {
      const read = await pageOf(metrics);
      return read.one('piecework_queue_open_requests').value === 1 && read;
    });
    const ready = page.one('piecework_queue_ready_sub_requests', { priorities: '10-19' });
    expect(ready.value).toBe(200);
    expect(page.one('piecework_queue_backlog_sub_requests').value).toBe(200);
    expect(page.one('piecework_queue_oldest_waiting_seconds').value).toBeGreaterThan(0);
    expect(page.one('piecework_queue_workers', { state: 'alive' }).value).toBe(0);
    // Nothing is known of the handlers: a second each.
    expect(page.one('piecework_queue_work_seconds').value).toBe(200);
    expect(page.one('piecework_queue_work_slots').value).toBe(20);
    expect(page.one('piecework_queue_needed_slots').value).toBe(4);

    const scale = async (query: string) => {
      const { status, body } = await scaleAnswer(metrics, new URLSearchParams(query));
      return { status, ...JSON.parse(body) };
    };
    expect(await scale('')).toMatchObject({ status: 200, neededSlots: 4, workSlots: 20, slots: 0 });
    expect(await scale('seconds=1')).toMatchObject({ neededSlots: 20 });
    expect(await scale('task=other')).toMatchObject({ neededSlots: 0, workSlots: 0 });
    expect(await scale('task=slow')).toMatchObject({ neededSlots: 4 });
    for (const [query, status] of [
      ['queue=none', 404],
      ['seconds=0', 400],
      ['sec=1', 400],
    ] as const)
      expect(await scale(query)).toMatchObject({ status, error: expect.any(String) });

    await flow.worker({ handler: () => held.opened, concurrency: 5 }).start();
    await until(async () => {
      const read = await pageOf(metrics);
      return read.one('piecework_queue_running_sub_requests').value === 5;
    });
    await admin(flow).cancel(id);
    held.open();
    await flow.complete(id);
    await until(async () => {
      const read = await pageOf(metrics);
      return (
        read.one('piecework_queue_needed_slots').value === 0 &&
        read.one('piecework_queue_requests_ended_total', { outcome: 'cancelled' }).value === 1
      );
    });
  });

  test('is one page for all who ask before it is read again', async ({ flow }) => {
    const { queue } = flow;
    const { id } = await flow.producer().submit([1], { id: flow.id('waits') });
    const metrics = new QueueMetrics({ queues: { [queue]: admin(flow) } });
    const pages = await Promise.all(Array.from({ length: 20 }, () => metrics.text()));
    // The age of the request is another one in each page that is built.
    const age = new PrometheusPage(pages[0] ?? '').one('piecework_queue_oldest_waiting_seconds');
    expect(age.value).toBeGreaterThan(0);
    expect(new Set(pages).size).toBe(1);
    await until(async () => (await metrics.text()) !== pages[0]);
    await admin(flow).cancel(id);
    await flow.complete(id);
  });

  test('is left out of the page while it cannot be read', async () => {
    const failed = async () => {
      throw new Error('away');
    };
    const problems: unknown[] = [];
    const queues = {
      q: { counts: failed, workers: failed, history: failed, list: async function* () {} },
    };
    const onError = (error: unknown) => void problems.push(error);
    const metrics = new QueueMetrics({ queues: queues as never, onError });
    const page = await pageOf(metrics);
    expect(page.one('piecework_queue_up', { queue: 'q' }).value).toBe(0);
    expect(page.all('piecework_queue_needed_slots')).toEqual([]);
    expect(problems).toHaveLength(1);
    expect((await scaleAnswer(metrics, new URLSearchParams())).status).toBe(503);
  });

  test('is read through the dashboard, by whoever may look', async ({ flow }) => {
    const { redis, queue } = flow;
    const app = fastify();
    const authorize = ({ headers }: { headers: Record<string, unknown> }) =>
      headers['authorization'] === 'Bearer let-me-in' ? { name: 'prometheus' } : undefined;
    await app.register(dashboard, { redis, authorize, queues: [{ name: queue }] });
    flow.after(() => app.close());
    expect((await app.inject({ url: '/metrics' })).statusCode).toBe(401);
    const headers = { authorization: 'Bearer let-me-in' };
    const answer = await app.inject({ url: '/metrics', headers });
    expect(answer.headers['content-type']).toContain('text/plain; version=0.0.4');
    expect(new PrometheusPage(answer.body).one('piecework_queue_up', { queue }).value).toBe(1);
    const scale = await app.inject({ url: `/scale?queue=${queue}`, headers });
    expect(scale.json()).toMatchObject({ queue, neededSlots: 0 });
  });
});

describe('the needed slots', () => {
  const request = { task: '', ready: 100, running: 0, limit: null, rests: false };
  const about = { handlerSeconds: 2, targetSeconds: 60, isPaused: false };
  const needed = (one: object, more: object = {}) =>
    workOf([{ ...request, ...one }], { ...about, ...more }).neededSlots;

  it('are as many as do the work in time, and no more than can be used', () => {
    expect(needed({})).toBe(4);
    expect(needed({}, { handlerSeconds: 600 })).toBe(100);
    expect(needed({ limit: 3 })).toBe(3);
    expect(needed({ ready: 1, running: 4 }, { handlerSeconds: 0.001 })).toBe(1);
    // Long handlers keep their slots.
    expect(needed({ ready: 0, running: 5 }, { handlerSeconds: 600 })).toBe(5);
  });

  it('are none for what may not start', () => {
    expect(needed({ ready: 0 })).toBe(0);
    expect(needed({ rests: true })).toBe(0);
    expect(needed({}, { isPaused: true })).toBe(0);
    expect(needed({ running: 2, limit: 2 }, { isPaused: true })).toBe(1);
  });
});

it('the counters of a fleet do not fall when a process ends', async () => {
  const fleet = new FleetMetrics();
  const snapshot = (n: number) => [
    ...[counter('done_total', n), { ...counter('now', n), type: 'gauge' }],
  ];
  const counter = (name: string, value: number) => ({
    ...{ name, help: name, type: 'counter', aggregator: 'sum' },
    values: [{ value, labels: { queue: 'q' } }],
  });
  const sums = async () => {
    const page = await pageOf(fleet);
    return ['done_total', 'now'].map((name) => page.all(name).map(({ value }) => value));
  };
  fleet.keep(1, snapshot(3) as never);
  fleet.keep(2, snapshot(4) as never);
  expect(await sums()).toEqual([[7], [7]]);
  fleet.ended(1);
  expect(await sums()).toEqual([[7], [4]]);
  fleet.keep(3, snapshot(1) as never);
  fleet.ended(2);
  expect(await sums()).toEqual([[8], [1]]);
  expect(await Promise.all([sums(), sums()])).toEqual([
    [[8], [1]],
    [[8], [1]],
  ]);
});

it.each([
  ['max 100000', 8],
  ['200000 100000', 2],
  ['150000 100000', 2],
  ['10000 100000', 1],
  ['1600000 100000', 8],
])('a container that is limited to %s uses %i of 8 cores', (limit, expected) => {
  expect(coresOf(limit, 8)).toBe(expected);
});

describe('on the command line', () => {
  const portIn = async (line: CommandLine, ...args: string[]) => {
    const started = line.start(...args);
    const [, port] = await saysIn(
      started,
      'stderr',
      /"port":(\d+)[^\n]*"msg":"(?:health|metrics|exporter)[^"]* listens"/,
    );
    return { started, port: Number(port) };
  };

  cliTest(
    'the parent of a fleet answers for its processes, at the port of their health',
    {
      timeout: 180_000,
    },
    async ({ commandLine }) => {
      const { file, queue, run } = commandLine;
      const handler = await file(
        'ends.mjs',
        `export default (n, { crashes }) => {
         if (n === '3' && crashes === 0) process.kill(process.pid, 'SIGKILL');
         return n;
       };`,
      );
      const { port } = await portIn(
        commandLine,
        ...['worker', '--handler', handler, '--processes', '2', '--concurrency', '2'],
        ...['--health-port', '0', '--metrics-port', '0'],
      );
      const slots = async (n: number) =>
        until(async () => {
          const page = await pageAt(port);
          return page.one('piecework_worker_slots', { queue }).value === n && page;
        }, STARTS);
      await slots(4);
      const input = await file('items.txt', '1\n2\n3\n4\n5\n6\n');
      const submitted = await run('submit', '--input', input, '--id', `${queue}-fleet`, '--wait');
      expect(submitted.code, submitted.stderr).toBe(0);
      const page = await slots(4);
      const done = page.one('piecework_attempts_total', { queue, outcome: 'succeeded' }).value;
      // A process that is killed takes with it what it counted after it last said something.
      expect(done).toBeGreaterThan(0);
      expect(done).toBeLessThanOrEqual(6);
      expect((await fetch(`http://127.0.0.1:${port}/live`)).status).toBe(200);
    },
  );

  cliTest('the exporter answers while Redis is away, and says so', async ({ commandLine }) => {
    const { queue } = commandLine;
    const { port } = await portIn(commandLine, 'exporter', '--port', '0');
    const page = await pageAt(port);
    expect(page.one('piecework_queue_up', { queue }).value).toBe(1);
    expect((await fetch(`http://127.0.0.1:${port}/ready`)).status).toBe(200);
    const taken = await commandLine.run('exporter', '--port', String(port));
    expect(taken.code).toBe(1);
    expect(taken.stderr).toContain(`--port ${port}: another process listens there`);
    const away = await portIn(
      commandLine,
      ...['exporter', '--port', '0', '--redis', 'redis://127.0.0.1:1'],
    );
    expect((await pageAt(away.port)).one('piecework_queue_up', { queue }).value).toBe(0);
    expect((await fetch(`http://127.0.0.1:${away.port}/ready`)).status).toBe(503);
    expect((await fetch(`http://127.0.0.1:${away.port}/scale`)).status).toBe(503);
    await saysIn(away.started, 'stderr', /the queue cannot be read/);
  });

  cliTest(
    'the exporter reads a queue again when Redis is back, and logs both once',
    { tags: 'processes' },
    async ({ commandLine }) => {
      const redis = await startRedis();
      const { started, port } = await portIn(
        commandLine,
        ...['exporter', '--port', '0', '--redis', redis.url],
      );
      const isUp = async () =>
        (await pageAt(port)).one('piecework_queue_up', { queue: commandLine.queue }).value === 1;
      expect(await isUp()).toBe(true);
      await redis.close();
      await until(async () => !(await isUp()), { what: 'the queue is not read' });
      await using again = await startRedis({ port: redis.port, password: redis.password });
      await until(isUp, { what: `the queue is read on ${again.url}`, ...STARTS });
      started.kill('SIGTERM');
      const { code, stderr } = await started.finished;
      expect(code).toBe(0);
      const lines = stderr.trim().split('\n');
      expect(lines.map((line) => (JSON.parse(line) as { msg: string }).msg)).toEqual([
        'exporter listens',
        'the queue cannot be read; its metrics are left out until it can',
        'the queue can be read again',
      ]);
    },
  );

  cliTest('an address that this machine does not have is named', async ({ commandLine }) => {
    const { run, file } = commandLine;
    const handler = await file('handler.mjs', 'export default () => 1;');
    for (const [flag, ...args] of [
      ['--port', 'exporter', '--host', '192.0.2.1'],
      ['--metrics-port', 'worker', '--handler', handler, '--metrics-host', '192.0.2.1'],
    ] as const) {
      const { code, stderr } = await run(...args, flag, '9465');
      expect([code, stderr]).toEqual([
        1,
        `piecework: ${flag} 9465: this machine does not have the address 192.0.2.1; choose one that it has\n`,
      ]);
    }
  });
});
