import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { createServer, type Server, type Socket } from 'node:net';
import type { RedisInput } from '@piecework/protocol';
import { IdQueue, type MetersReading } from '@piecework/queues';
import { describe, expect } from 'vitest';
import { freePort } from '../../packages/embedded/dist/free-port.js';
import { type Flow, test } from '../support/flow.js';
import { until } from '../support/until.js';

/** On Linux one where no other test has a server: a port that is left for a while is still free there. */
const HOST = process.platform === 'linux' ? '127.0.0.2' : '127.0.0.1';

/**
 * Listens as Carbon does, on a port of its own or on the one that is named; keeps the lines. Its own is none
 * that is handed out for outgoing connections, so it is still free when somebody listens there again.
 */
async function carbon(flow: Flow, named?: number) {
  const port = named ?? (await freePort());
  const lines: string[] = [];
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    let rest = '';
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('data', (data) => {
      const parts = (rest + data.toString()).split('\n');
      rest = parts.pop() as string;
      lines.push(...parts);
    });
  });
  server.listen(port, HOST);
  await once(server, 'listening');
  const stop = async () => {
    for (const socket of sockets) socket.resetAndDestroy();
    if (!server.listening) return;
    server.close();
    await once(server, 'close');
  };
  flow.after(stop);
  return { lines, stop, port: (server.address() as AddressInfo).port };
}

/** Listens as StatsD does; keeps the packets' lines. */
async function statsd(flow: Flow) {
  const lines: string[] = [];
  const socket = createSocket('udp4', (data) => lines.push(...data.toString().split('\n')));
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  flow.after(() => socket.close());
  return { lines, port: socket.address().port };
}

/** `path value seconds`, exactly. */
function parsed(line: string): { path: string; value: number; seconds: number } {
  const parts = /^([\w.-]+) (\d+(?:\.\d+)?) (\d+)$/.exec(line);
  if (!parts) throw new Error(`no line of Graphite: ${line}`);
  return { path: parts[1] as string, value: Number(parts[2]), seconds: Number(parts[3]) };
}

async function join(flow: Flow): Promise<IdQueue> {
  const queue = await IdQueue.join(flow.queue, { redis: flow.redis as RedisInput });
  flow.after(async () => {
    await queue.drop().catch(() => {});
    await queue.close();
  });
  return queue;
}

/** Adds three, pulls all, completes two of them, one as failed. */
async function work(queue: IdQueue): Promise<void> {
  await queue.add(['a', 'b', 'c']);
  const keys = [await queue.pull(), await queue.pull(), await queue.pull()].map(({ key }) => key);
  await queue.done(keys[0] as string);
  await queue.fail(keys[1] as string, 'no');
}

const HOUR_MS = 3_600_000;

describe('meters', () => {
  test('are loaded only when they are asked for', () => {
    const queues = new URL('../../packages/queues/dist/', import.meta.url);
    for (const file of ['index.js', 'ids/id-queue.js'])
      expect(readFileSync(new URL(file, queues), 'utf8')).not.toMatch(/from '.*metrics\//);
  });

  test('send counts, rates and gauges to Graphite', async ({ flow }) => {
    const queue = await join(flow);
    const { lines, port } = await carbon(flow);
    const readings: MetersReading[] = [];
    const meters = await queue.meters({
      everyMs: HOUR_MS,
      graphite: { host: HOST, port, prefix: 'test.ids' },
      onReading: (reading) => readings.push(reading),
    });
    await work(queue);
    await queue.add('d');
    // Reads a last time.
    await meters.close();
    await until(() => lines.length === 10, { what: 'ten lines came' });
    const found = lines.map(parsed);
    const values = Object.fromEntries(found.map(({ path, value }) => [path, value]));
    expect(values).toMatchObject({
      'test.ids.added.count': 4,
      'test.ids.pulled.count': 3,
      'test.ids.completed.count': 2,
      'test.ids.failed.count': 1,
      'test.ids.pending': 1,
      'test.ids.running': 1,
    });
    const { rates, at } = readings[0] as MetersReading;
    for (const kind of ['added', 'pulled', 'completed', 'failed'] as const) {
      expect(rates[kind].perSecond).toBeGreaterThan(0);
      expect(values[`test.ids.${kind}.rate`]).toBeCloseTo(rates[kind].perSecond, 2);
    }
    for (const { seconds } of found) expect(seconds).toBe(Math.floor(at / 1_000));
  });

  test('continue when Graphite was away, and disturb nothing meanwhile', async ({ flow }) => {
    const queue = await join(flow);
    const first = await carbon(flow);
    const errors: unknown[] = [];
    const meters = await queue.meters({
      everyMs: 20,
      graphite: { host: HOST, port: first.port },
      onError: (error) => errors.push(error),
      onReading: () => {
        throw new Error('of the listener');
      },
    });
    await until(() => first.lines.length >= 20, { what: 'two readings came' });
    await first.stop();
    await until(() => errors.some((error) => /ECONN/.test(String(error))), {
      what: 'it was told that nobody listens',
    });
    await queue.add('a');
    const second = await carbon(flow, first.port);
    const added = `piecework.ids.${flow.queue}.added.count 1 `;
    await until(() => second.lines.some((line) => line.startsWith(added)), { what: 'lines come' });
    for (const line of second.lines) parsed(line);
    await meters.close();
    const { length } = second.lines;
    await queue.counts();
    expect(second.lines.length).toBeLessThanOrEqual(length + 10);
    expect(errors.some((error) => /of the listener/.test(String(error)))).toBe(true);
  });

  test('keep a bounded number of lines that nobody takes', async ({ flow }) => {
    const { Graphite } = await import('../../packages/queues/dist/metrics/graphite.js');
    const { stop, port } = await carbon(flow);
    await stop();
    const graphite = new Graphite({ host: HOST, port, prefix: 'x' }, () => {});
    const rate = { count: 1, fresh: 1, perSecond: 1 };
    const rates = { added: rate, pulled: rate, completed: rate, failed: rate };
    for (let i = 1; i <= 1_000; i += 1)
      graphite.send({ at: i * 1_000, rates, gauges: { pending: 1, running: 1 } });
    const { lines } = await carbon(flow, port);
    await until(() => lines.length >= 1_000, { what: 'the lines came' });
    await graphite.close();
    expect(lines).toHaveLength(1_000);
    expect(parsed(lines[0] as string).seconds).toBe(901);
    expect(parsed(lines.at(-1) as string).seconds).toBe(1_000);
  });

  test('send counters and gauges to StatsD', async ({ flow }) => {
    const queue = await join(flow);
    const { lines, port } = await statsd(flow);
    const meters = await queue.meters({ everyMs: HOUR_MS, statsd: { port, prefix: 'test.ids' } });
    await work(queue);
    await meters.close();
    await until(() => lines.filter((line) => line !== '').length === 6, {
      what: 'six lines came',
    });
    expect(lines.filter((line) => line !== '').sort()).toEqual([
      'test.ids.added:3|c',
      'test.ids.completed:2|c',
      'test.ids.failed:1|c',
      'test.ids.pending:0|g',
      'test.ids.pulled:3|c',
      'test.ids.running:1|g',
    ]);
  });

  test('send to StatsD only what is new, and end with their queue', async ({ flow }) => {
    const queue = await join(flow);
    const { lines, port } = await statsd(flow);
    await queue.meters({ everyMs: 20, statsd: { port } });
    await queue.add(['a', 'b']);
    const name = `piecework.ids.${flow.queue}.added`;
    const added = () => lines.filter((line) => line.startsWith(name));
    await until(() => added().length >= 3, { what: 'three readings came' });
    await queue.add('c');
    await until(() => added().some((line) => line === `${name}:1|c`), { what: 'the third came' });
    await queue.close();
    const sum = () =>
      added().reduce((total, line) => total + Number(/:(\d+)\|c$/.exec(line)?.[1]), 0);
    await until(() => sum() === 3, { what: 'three were counted' });
    const again = await join(flow);
    expect(await again.counts()).toMatchObject({ pending: 3 });
  });

  test('report what is missing when Redis does not answer, and continue', async ({ flow }) => {
    const queue = await join(flow);
    const readings: MetersReading[] = [];
    const errors: unknown[] = [];
    const meters = await queue.meters({
      everyMs: 10,
      onReading: (reading) => readings.push(reading),
      onError: (error) => errors.push(error),
    });
    await until(() => readings.some(({ gauges }) => gauges), { what: 'a reading has gauges' });
    await queue.drop();
    await until(() => readings.at(-1)?.gauges === undefined, { what: 'a reading has none' });
    expect(String(errors[0])).toContain('NoQueueError');
    await meters.close();
  });
});
