import { type Command, Redis } from 'ioredis';
import { describe, expect } from 'vitest';
import { type Flow, gate, numbers, test } from '../support/flow.js';
import { LossyRedis } from '../support/lossy-redis.js';
import { scriptOf } from '../support/script-names.js';
import { until } from '../support/until.js';

/** So long that nothing that is looked after in the rhythm of the lease happens in a test. */
const LONG_MS = 3_600_000;

/** A client that notes how much text each settle brought. */
class Weighing extends Redis {
  readonly brought: number[] = [];

  override sendCommand(command: Command, stream?: never): unknown {
    const reply = super.sendCommand(command, stream) as Promise<unknown>;
    if (scriptOf(command.name, command.args) !== 'settle') return reply;
    return reply.then((answer) => {
      // One text, or a list where payloads are long.
      const brought = (answer as unknown[][]).flatMap((one) => one[3]);
      const length = brought.join('').length;
      if (typeof brought[0] === 'string' && length > 0) this.brought.push(length);
      return answer;
    });
  }
}

function clientOf<T extends Redis>(flow: Flow, Client: new (...args: never[]) => T): T {
  const made = Client as unknown as new (url: string, options: object) => T;
  const client = new made(flow.redis as string, { lazyConnect: true, protocol: 2 });
  flow.after(() => client.disconnect());
  return client;
}

describe('a settle that reads', { tags: ['one-server'] }, () => {
  test('brings large payloads in pieces, and every permit gets work', async ({ flow }) => {
    const client = clientOf(flow, Weighing);
    const open = gate();
    const handler = async (text: string) => {
      await open.opened;
      return text.length;
    };
    const worker = flow.worker({ redis: client, concurrency: 20, handler });
    // Before its client is.
    flow.after(() => worker.close());
    await worker.start();
    const large = 'x'.repeat(200_000);
    const { id } = await flow.producer().submit(Array(60).fill(large), { limit: 20 });
    await until(() => worker.running === 20);
    open.open();
    expect(await flow.complete(id)).toMatchObject({ succeeded: 60 });
    expect(new Set((await flow.results(id)).values())).toEqual(new Set([200_000]));
    // What is in 1 MiB, and the one that goes beyond it; an enter may have brought the first.
    expect(Math.max(...client.brought)).toBeLessThan(6 * 201_000);
    expect(client.brought.length).toBeGreaterThanOrEqual((60 - 6) / 6);
  });

  test('that is cut short by large payloads does not make its worker leave', async ({ flow }) => {
    const client = clientOf(flow, LossyRedis);
    const [small, large] = [gate(), gate()];
    const handler = async (text: string) => {
      await (text === '' ? small : large).opened;
      return text.length;
    };
    const worker = flow.worker({ redis: client, concurrency: 4, leaseMs: LONG_MS, handler });
    flow.after(() => worker.close());
    await worker.start();
    // After the small ones it reads four at once, of which three are more than a mebibyte.
    const payloads = [...Array(4).fill(''), ...Array(8).fill('x'.repeat(400_000))];
    const { id } = await flow.producer().submit(payloads, { limit: 4 });
    await until(() => worker.running === 4);
    const entered = client.callsOf('enter');
    small.open();
    await until(async () => {
      const state = await flow.request(id).state();
      return state?.succeeded === 4 && worker.running === 4;
    });
    // Whoever leaves has to enter again.
    expect(client.callsOf('enter')).toBe(entered);
    large.open();
    expect(await flow.complete(id)).toMatchObject({ succeeded: 12 });
  });

  test('finds what it brought when its reply got lost', async ({ flow }) => {
    const client = clientOf(flow, LossyRedis);
    const gates = numbers(4).map(() => gate());
    const handler = async (n: number) => {
      await gates[n]?.opened;
      return n;
    };
    const worker = flow.worker({ redis: client, concurrency: 2, leaseMs: LONG_MS, handler });
    flow.after(() => worker.close());
    await worker.start();
    const { id } = await flow.producer().submit(numbers(4), { limit: 2 });
    await until(() => worker.running === 2);
    client.lose(1);
    gates[0]!.open();
    // Whoever had to wait for somebody to look would wait for the first look, in twenty seconds.
    await until(() => worker.running === 2 && client.calls > 1, { timeoutMs: 12_000 });
    for (const one of gates) one.open();
    await until(async () => (await flow.request(id).state())?.status === 'complete', {
      timeoutMs: 12_000,
      what: 'what the lost reply brought is done',
    });
    expect(await flow.complete(id)).toMatchObject({ succeeded: 4, failed: 0 });
  });
});

describe('a take', { tags: ['one-server'] }, () => {
  test('is compared when its reply got lost, and what it took is run', async ({ flow }) => {
    const client = clientOf(flow, LossyRedis);
    const other = gate();
    let attempts = 0;
    const handler = async (n: number) => {
      // Keeps the worker's lease: nobody reclaims what it does not know that it has.
      if (n === 0) await other.opened;
      else if (++attempts === 1) throw new Error('again');
      return n;
    };
    const worker = flow.worker({ redis: client, concurrency: 2, leaseMs: LONG_MS, handler });
    flow.after(() => worker.close());
    await worker.start();
    client.loseNext('take');
    const { id } = await flow.producer().submit(numbers(2), { limit: 2, attempts: 2, backoff: 0 });
    await until(() => attempts === 2, { timeoutMs: 60_000, what: 'the second attempt runs' });
    expect(client.callsOf('take')).toBeGreaterThan(1);
    other.open();
    expect(await flow.complete(id)).toMatchObject({ succeeded: 2, failed: 0 });
  });
});
