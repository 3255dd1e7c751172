import { Admin, Piecework } from 'piecework';
import { describe, expect } from 'vitest';
import { type Flow, numbers, test } from '../support/flow.js';

function pieceworkOf(flow: Flow): Piecework {
  const pw = new Piecework({ redis: flow.redis, queue: flow.queue });
  flow.after(() => pw.close());
  return pw;
}

const DEFAULTS = {
  priority: 50,
  limit: null,
  task: undefined,
  window: 0,
  results: 'keep',
  maxCrashes: 3,
  attempts: 1,
  backoff: undefined,
  attemptTimeoutMs: undefined,
  timing: false,
  deadlineMs: undefined,
  delayMs: undefined,
  runAt: undefined,
  expedite: false,
  toleratedFailures: 0,
  onExceeded: 'continue',
  retentionMs: 86_400_000,
  onProducerLost: 'cancel',
  producerLeaseMs: 30_000,
};

describe('the status of one request says', () => {
  test('the options that it was submitted with, defaults filled in', async ({ flow }) => {
    const pw = pieceworkOf(flow);
    const plain = await pw.submit(numbers(1), { id: flow.id('plain') });
    expect((await plain.status()).options).toEqual(DEFAULTS);
    const runAt = new Date(Date.now() + 3_600_000);
    const given = {
      priority: 7,
      limit: 12,
      task: 'resize',
      window: 1_000,
      results: 'discard',
      maxCrashes: 5,
      attempts: 4,
      attemptTimeoutMs: 20_000,
      timing: true,
      deadlineMs: 7_200_000,
      expedite: true,
      toleratedFailures: '2.5%',
      onExceeded: 'cancel',
      retentionMs: 60_000,
      onProducerLost: 'seal',
      producerLeaseMs: 45_000,
    } as const;
    const backoff = { type: 'exponential', delayMs: 500, jitter: 0.5 } as const;
    const id = flow.id('given');
    const request = await pw.submit(numbers(1), { ...given, runAt, backoff, id });
    expect((await request.status()).options).toEqual({
      ...given,
      backoff: { ...backoff, maxDelayMs: 86_400_000 },
      runAt: runAt.getTime(),
      delayMs: undefined,
    });
  });

  test('them also after an update and a redrive, beside what applies now', async ({ flow }) => {
    const pw = pieceworkOf(flow);
    const id = flow.id('changed');
    const request = await pw.submit(numbers(3), { id, limit: 5, toleratedFailures: 1 });
    await request.update({ limit: 2, priority: 10, toleratedFailures: '50%' });
    await request.update({ limit: 1, priority: 20 });
    const options = { ...DEFAULTS, limit: 5, toleratedFailures: 1 };
    expect(await request.status()).toMatchObject({ limit: 1, priority: 20, options });

    let fails = true;
    const handler = () => {
      if (fails) throw new Error('not yet');
    };
    await flow.worker({ handler }).start();
    await request.completion();
    fails = false;
    await request.redrive();
    await request.completion();
    expect((await request.status()).options).toEqual(options);
  });

  test('its generations: when each began and ended, and how', async ({ flow }) => {
    const pw = pieceworkOf(flow);
    const failing = new Set([1, 3]);
    const handler = (n: unknown) => {
      if (failing.has(n as number)) throw new Error(`not ${n}`);
    };
    const request = await pw.submit(numbers(5), { id: flow.id('again') });
    const [only] = (await request.status()).generations;
    const { generation, createdAt } = await request.status();
    expect(only).toEqual({
      ...{ generation, beganAt: createdAt, completedAt: undefined, outcome: undefined },
      ...{ endReason: undefined, succeeded: 0, failed: 0, cancelled: 0, redriven: 0 },
    });
    await flow.worker({ handler }).start();
    await request.completion();
    failing.delete(1);
    await request.redrive();
    await request.completion();
    await request.redrive();
    await request.completion();

    const { generations, generation: last } = await request.status();
    expect(
      generations.map(({ outcome, succeeded, failed, redriven }) => {
        return { outcome, succeeded, failed, redriven };
      }),
    ).toEqual([
      { outcome: 'failed', succeeded: 3, failed: 2, redriven: 0 },
      { outcome: 'failed', succeeded: 4, failed: 1, redriven: 2 },
      { outcome: 'failed', succeeded: 4, failed: 1, redriven: 1 },
    ]);
    expect(generations[0]).toMatchObject({ generation, beganAt: createdAt });
    expect(generations.at(-1)?.generation).toBe(last);
    const times = generations.flatMap(({ beganAt, completedAt = Number.NaN }) => [
      beganAt,
      completedAt,
    ]);
    expect(times).toEqual([...times].sort((a, b) => a - b));
  });

  test('only the ten latest of the generations that ended before', async ({ flow }) => {
    const pw = pieceworkOf(flow);
    const handler = () => {
      throw new Error('never');
    };
    await flow.worker({ handler }).start();
    const request = await pw.submit(numbers(1), { id: flow.id('often') });
    const seen: number[] = [];
    for (let i = 0; i < 13; i++) {
      await request.completion();
      seen.push((await request.status()).generation);
      if (i < 12) await request.redrive();
    }
    const { generations } = await request.status();
    expect(generations.map(({ generation }) => generation)).toEqual(seen.slice(-11));
  });

  test('what a list of many requests leaves out', async ({ flow }) => {
    const pw = pieceworkOf(flow);
    const request = await pw.submit(numbers(1), { id: flow.id('listed') });
    const admin = new Admin({ redis: flow.redis, queue: flow.queue });
    flow.after(() => admin.close());
    const { options: _, generations: __, ...rest } = await request.status();
    for await (const listed of admin.list({ state: 'all' }))
      expect(Object.keys(listed)).toEqual(Object.keys(rest));
    expect.assertions(1);
  });
});
