import { setTimeout as sleep } from 'node:timers/promises';
import { WorkerMetrics } from '@piecework/metrics';
import type { HandlerContext } from '@piecework/worker';
import { Piecework } from 'piecework';
import { describe, expect } from 'vitest';
import { LEASE_MS } from '../support/fleet.js';
import { type Flow, gate, numbers, test } from '../support/flow.js';
import { startProgram } from '../support/processes.js';
import { PrometheusPage } from '../support/prometheus.js';
import { until } from '../support/until.js';

function pieceworkOf({ redis, queue, after }: Flow): Piecework {
  const pw = new Piecework({ redis, queue });
  after(() => pw.close());
  return pw;
}

/** What each run cost by the clock of its handler, in ms. */
class Clock {
  ms = 0;
  async around<T>(work: () => Promise<T>): Promise<T> {
    const begins = performance.now();
    try {
      return await work();
    } finally {
      this.ms += performance.now() - begins;
    }
  }
}

describe('the cost of a request', () => {
  for (const items of [1, 20, 300])
    test(`is the exact sum over several workers, of ${items} sub-requests`, async ({ flow }) => {
      const clock = new Clock();
      const handler = (n: number, { usage }: HandlerContext) =>
        clock.around(async () => {
          await sleep(1);
          usage({ tokens: n, usd: 0.001 });
          usage({ tokens: 1 });
          return n;
        });
      for (let i = 0; i < 3; i += 1) await flow.worker({ handler, concurrency: 4 }).start();
      const pw = pieceworkOf(flow);
      const request = await pw.submit(numbers(items), { id: flow.id('sum') });
      await request.completion();
      const { cost } = await request.status();
      expect(cost).toEqual({
        handlerMs: expect.any(Number),
        attempts: items,
        usage: {
          tokens: (items * (items - 1)) / 2 + items,
          usd: expect.closeTo(items * 0.001, 9),
        },
      });
      // What a worker measures begins before the handler and ends behind it.
      expect(cost.handlerMs).toBeGreaterThanOrEqual(clock.ms);
      for await (const listed of pw.admin.list({ state: 'all' })) expect(listed.cost).toEqual(cost);
    });

  test('contains failed attempts, returned ones by their time and usage, and those of a redrive', async ({
    flow,
  }) => {
    let fails = true;
    let held = false;
    const handler = (n: number, context: HandlerContext) => {
      context.usage({ calls: 1 });
      if (n === 1 && !held) {
        held = true;
        throw context.holdRequest(1);
      }
      if (n === 2 && fails) throw new Error('no');
      return n;
    };
    await flow.worker({ handler }).start();
    const pw = pieceworkOf(flow);
    const request = await pw.submit(numbers(4), { id: flow.id('all'), attempts: 3 });
    expect((await request.completion()).status).toBe('failed');
    // Three that succeeded, three that failed; and one that was returned.
    const first = (await request.status()).cost;
    expect(first).toMatchObject({ attempts: 6, usage: { calls: 7 } });
    expect(first.handlerMs).toBeGreaterThan(0);
    await flow.complete(request.id);
    fails = false;
    await request.redrive();
    await request.completion();
    const all = (await request.status()).cost;
    expect(all).toMatchObject({ attempts: 7, usage: { calls: 8 } });
    expect(all.handlerMs).toBeGreaterThan(first.handlerMs);
  });

  test('counts what a killed worker had as attempts', async ({ flow }) => {
    const { redis, queue } = flow;
    const pw = pieceworkOf(flow);
    const request = await pw.submit(numbers(2), { id: flow.id('killed'), limit: 2 });
    const options = { redis, queue, concurrency: 2, leaseMs: LEASE_MS };
    const victim = startProgram(flow, 'worker', { options, handle: { hold: true } });
    await until(async () => (await request.status()).counts.inFlight === 2);
    victim.kill('SIGKILL');
    await victim.ended;
    const handler = (n: number, { usage }: HandlerContext) => {
      usage({ runs: 1 });
      return n;
    };
    await flow.worker({ handler, leaseMs: LEASE_MS }).start();
    await request.completion();
    expect((await request.status()).cost).toMatchObject({ attempts: 4, usage: { runs: 2 } });
    for (const { id } of await flow.queueCommands.workers())
      await flow.queueCommands.deregister(id);
  });

  test('contains what a closing worker gave back', async ({ flow }) => {
    const began = gate();
    const handler = async (n: number, { usage, signal }: HandlerContext) => {
      usage({ runs: 1 });
      began.open();
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      return n;
    };
    const worker = flow.worker({ handler });
    await worker.start();
    const pw = pieceworkOf(flow);
    const request = await pw.submit([1], { id: flow.id('back') });
    await began.opened;
    await worker.close({ timeoutMs: 0 });
    expect((await request.status()).cost).toMatchObject({ attempts: 0, usage: { runs: 1 } });
    await request.cancel();
    await flow.complete(request.id);
  });

  test('is nothing before an attempt has ended', async ({ flow }) => {
    const pw = pieceworkOf(flow);
    const request = await pw.submit([1], { id: flow.id('new') });
    expect((await request.status()).cost).toEqual({ handlerMs: 0, attempts: 0, usage: {} });
    await request.cancel();
    await flow.complete(request.id);
  });
});

describe('context.usage', () => {
  test('refuses what it cannot add up, and then adds nothing', async ({ flow }) => {
    const twenty = Object.fromEntries(numbers(20).map((n) => [`n${n}`, 1]));
    const wrong: [unknown, string][] = [
      [undefined, 'usage is missing: an object of numbers'],
      [12, 'usage: 12 is not allowed; allowed: an object of numbers'],
      [[1], 'usage: '],
      [{ ok: 1, tokens: -1 }, 'usage.tokens: -1 is not allowed; allowed: a finite number'],
      [{ ok: 1, tokens: Number.NaN }, 'usage.tokens: NaN is not allowed'],
      [{ ok: 1, tokens: Number.POSITIVE_INFINITY }, 'usage.tokens: Infinity is not allowed'],
      [{ ok: 1, tokens: '12' }, 'usage.tokens: "12" is not allowed'],
      [{ ok: 1, 'a b': 1 }, 'usage: "a b" is not allowed; allowed: as names 1 to 128 of A-Z'],
      [{ ok: 1, ...twenty }, 'usage: 21 is not allowed; allowed: at most 20 names'],
    ];
    const errors: Error[] = [];
    const handler = (_: unknown, { usage }: HandlerContext) => {
      for (const [amounts] of wrong) {
        try {
          usage(amounts as never);
        } catch (error) {
          errors.push(error as Error);
        }
      }
      usage(twenty);
    };
    await flow.worker({ handler }).start();
    const request = await pieceworkOf(flow).submit([1], { id: flow.id('wrong') });
    await request.completion();
    expect(errors.map(({ name }) => name)).toEqual(wrong.map(() => 'InvalidOptionError'));
    for (const [i, [, message]] of wrong.entries()) expect(errors[i]?.message).toContain(message);
    expect((await request.status()).cost.usage).toEqual(twenty);
  });

  test('is in the metrics by task and name, with a bounded number of names', async ({ flow }) => {
    const { queue } = flow;
    const metrics = new WorkerMetrics();
    const handler = (n: number, { usage, attempt }: HandlerContext) => {
      usage({ tokens: 2, [`name${n}`]: 1 });
      if (attempt === 1 && n === 0) throw new Error('again');
    };
    await flow.worker({ handler, metrics, concurrency: 1 }).start();
    const options = { id: flow.id('names'), task: 'ask', attempts: 2 };
    const { id } = await flow.producer().submit(numbers(40), options);
    await flow.complete(id);
    const page = new PrometheusPage(await metrics.text());
    const of = (name: string) =>
      page.one('piecework_usage_total', { queue, task: 'ask', name }).value;
    expect(of('tokens')).toBe(82);
    expect(page.all('piecework_usage_total', { queue })).toHaveLength(21);
    expect(of('other')).toBeGreaterThanOrEqual(20);
  });
});
