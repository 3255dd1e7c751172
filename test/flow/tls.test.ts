/**
 * A server that speaks TLS, with a certificate that the clients are told of.
 * @module-tag processes
 */
import { fileURLToPath } from 'node:url';
import { Notifier } from '@piecework/notifier';
import { Redis } from 'ioredis';
import { Piecework } from 'piecework';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { cli, startCli } from '../support/cli.js';
import { gate, numbers, RENEWAL_THREAD, test } from '../support/flow.js';
import { startTlsServer, type TlsServer } from '../support/tls-server.js';
import { until } from '../support/until.js';

let server: TlsServer;
let onlooker: Redis;
beforeAll(async () => {
  server = await startTlsServer();
  onlooker = new Redis(server.plainUrl);
});
afterAll(async () => {
  onlooker?.disconnect();
  await server?.[Symbol.asyncDispose]();
});

/** The thread renews it at the latest when three tenths are left: the machine may stand still so long. */
const LEASE_MS = 5_000;

const options = (more: object = {}) => ({
  host: '127.0.0.1',
  port: server.port,
  tls: { ca: server.ca, ...more },
});

/** What is connected, as `name or last command`, by whether it came in by TLS. */
async function connections(): Promise<{ tls: string[]; plain: string[] }> {
  const list = String(await onlooker.client('LIST'))
    .trim()
    .split('\n');
  const found = { tls: [] as string[], plain: [] as string[] };
  for (const line of list) {
    const of = (field: string) => new RegExp(`\\b${field}=(\\S*)`).exec(line)?.[1] ?? '';
    const port = Number(of('laddr').split(':').at(-1));
    found[port === server.port ? 'tls' : 'plain'].push(of('name') || of('cmd'));
  }
  return found;
}

describe('over TLS', () => {
  test('everything is done, by every kind of connection', async ({ flow }) => {
    const redis = options();
    const held = gate();
    const crashes: number[] = [];
    const worker = flow.worker({
      ...RENEWAL_THREAD,
      redis,
      leaseMs: LEASE_MS,
      concurrency: 2,
      handler: async (n: number, context) => {
        crashes.push(context.crashes);
        // Holds up the event loop for longer than the lease: the thread, once it is there, has to renew it.
        if (n === 1) {
          await until(async () => (await connections()).tls.includes('piecework-renewal'));
          Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LEASE_MS + 600);
        }
        if (n === 99) await Promise.race([held.opened, aborted(context.signal)]);
        return n;
      },
    });
    await worker.start();
    await using pw = new Piecework({ redis, queue: flow.queue });
    await using notifier = new Notifier({ redis, queue: flow.queue });
    const request = await pw.submit(numbers(4), { id: flow.id('work') });
    expect(await notifier.completion(request.id)).toMatchObject({ status: 'succeeded' });
    const values: unknown[] = [];
    for await (const result of notifier.results(request.id, { order: 'index' }))
      if (result.status === 'succeeded') values.push(result.value);
    expect(values).toEqual([0, 1, 2, 3]);
    expect(crashes).toEqual([0, 0, 0, 0]);

    const waiting = await pw.submit([99], { id: flow.id('waiting') });
    const completion = notifier.completion(waiting.id);
    await until(async () => (await waiting.status()).counts.inFlight === 1);
    const kinds = ['piecework-control', 'piecework-notifier', 'piecework-renewal', 'blmpop'];
    await until(
      async () => {
        const { tls } = await connections();
        return kinds.every((kind) => tls.includes(kind));
      },
      { what: `there are TLS connections of ${kinds}` },
    );
    const { plain } = await connections();
    // The onlooker itself.
    expect(plain).toEqual(['client|list']);
    await waiting.cancel();
    expect(await completion).toMatchObject({ status: 'cancelled' });
    for (const { id } of [request, waiting]) await pw.request(id).drop();
  });

  test('the command line takes the certificate authority from the environment', async ({
    flow,
  }) => {
    const url = `rediss://localhost:${server.port}`;
    const handler = fileURLToPath(new URL('../support/programs/handler.mjs', import.meta.url));
    const before = process.env['NODE_EXTRA_CA_CERTS'];
    process.env['NODE_EXTRA_CA_CERTS'] = server.caFile;
    flow.after(() => {
      if (before === undefined) delete process.env['NODE_EXTRA_CA_CERTS'];
      else process.env['NODE_EXTRA_CA_CERTS'] = before;
    });
    const common = ['--queue', flow.queue];
    const worker = startCli(['worker', '--handler', handler, ...common], { redis: url });
    const args = ['submit', '--input', '-', '--id', flow.id('cli'), '--wait', '--json', ...common];
    const ended = await cli(args, { redis: url, input: 'a\nb\n' });
    expect(ended).toMatchObject({ code: 0, stderr: '' });
    expect(JSON.parse(ended.stdout)).toMatchObject({ status: 'succeeded', counts: { total: 2 } });
    const findings = await cli(['doctor', '--json', ...common], { redis: url });
    expect(findings.code).toBe(0);
    worker.child.kill('SIGTERM');
    expect((await worker.finished).code).toBe(0);
    expect((await cli(['drop', flow.id('cli'), ...common], { redis: url })).code).toBe(0);
  });

  test('nobody is believed whose certificate is not known', async ({ flow }) => {
    await using stranger = new Piecework({
      redis: `rediss://localhost:${server.port}`,
      queue: flow.queue,
    });
    for (let call = 0; call < 3; call += 1) {
      const refused = await stranger.check().catch((thrown: unknown) => thrown);
      expect(refused).toMatchObject({
        message: expect.stringMatching(/^connect: self-signed certificate/),
        retryable: false,
      });
    }
  });

  test('a client without TLS gets an error that says so at every call', async ({ flow }) => {
    await using pw = new Piecework({
      redis: `redis://127.0.0.1:${server.port}`,
      queue: flow.queue,
    });
    for (let call = 0; call < 3; call += 1)
      await expect(pw.check()).rejects.toThrow(/speaks TLS there: name it by rediss/);
  });

  test('a server that wants to know its clients gets their certificates', async ({ flow }) => {
    await onlooker.config('SET', 'tls-auth-clients', 'yes');
    try {
      const known = options({ cert: server.ca, key: server.key });
      const worker = flow.worker({ redis: known, handler: (n: number) => n });
      await worker.start();
      await using pw = new Piecework({ redis: known, queue: flow.queue });
      const request = await pw.submit([1], { id: flow.id('known') });
      expect(await request.completion()).toMatchObject({ status: 'succeeded' });
      await request.drop();
      await worker.close();
      await using unknown = new Piecework({ redis: options(), queue: flow.queue });
      await expect(unknown.check()).rejects.toThrow(/^connect: /);
    } finally {
      await onlooker.config('SET', 'tls-auth-clients', 'no');
    }
  });
});

const aborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
