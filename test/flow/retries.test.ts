import { Agenda, delayAfter, QueueCommands } from '@piecework/protocol';
import type { HandlerContext } from '@piecework/worker';
import { HeldError, UnrecoverableError } from 'piecework';
import { describe, expect, it } from 'vitest';
import { type Flow, numbers, test } from '../support/flow.js';
import { until } from '../support/until.js';

/** Fails what it is told to fail, and keeps who ran when. */
function flaky(failures: (n: number, attempt: number, context: HandlerContext) => unknown) {
  const ran: { n: number; attempt: number; at: number }[] = [];
  const handler = (n: number, context: HandlerContext) => {
    ran.push({ n, attempt: context.attempt, at: performance.now() });
    const error = failures(n, context.attempt, context);
    if (error) throw error;
    return n;
  };
  return { ran, handler };
}

/** How often an agenda has ticked since now that knows nothing: every 5 s. */
async function restingAgenda(flow: Flow) {
  const seen = { ticks: 0 };
  const queue = new QueueCommands(flow.connection, `${flow.queue}.resting`);
  const onTick = () => {
    seen.ticks += 1;
  };
  const agenda = new Agenda(flow.connection, queue, { onTick });
  flow.after(() => agenda.close());
  agenda.start();
  await until(() => seen.ticks === 1);
  return seen;
}

describe('the delay before the next attempt', () => {
  const base = { delayMs: 100, maxDelayMs: 1_000, jitter: 0 } as const;

  it('is the same, or grows to its bound, or is left to chance in part', () => {
    const delays = (type: 'fixed' | 'exponential', jitter = 0, random = () => 0) =>
      [1, 2, 3, 4, 5, 900].map((n) => delayAfter({ ...base, type, jitter }, n, random));
    expect(delays('fixed')).toEqual([100, 100, 100, 100, 100, 100]);
    expect(delays('exponential')).toEqual([100, 200, 400, 800, 1_000, 1_000]);
    expect(delays('exponential', 0.5, () => 1)).toEqual([50, 100, 200, 400, 500, 500]);
  });
});

describe('a sub-request that fails', () => {
  test('is tried as often as asked for, and settles once', async ({ flow }) => {
    const { ran, handler } = flaky((n, attempt) => n % 2 === 0 && attempt < 3 && new Error('no'));
    await flow.worker({ handler }).start();
    const { id } = await flow.producer().submit(numbers(20), { attempts: 3 });
    expect(await flow.complete(id)).toMatchObject({ succeeded: 20, failed: 0 });
    expect(ran.filter(({ n }) => n === 4).map(({ attempt }) => attempt)).toEqual([1, 2, 3]);
    expect(ran).toHaveLength(10 + 30);
  });

  test('waits for its backoff, delayed in the books, and fails when no attempt is left', async ({
    flow,
  }) => {
    const { ran, handler } = flaky(() => new Error('no'));
    await flow.worker({ handler }).start();
    const producer = flow.producer();
    const long = await producer.submit([0], { attempts: 2, backoff: 3_600_000 });
    await until(async () => (await flow.request(long.id).inspect())?.delayed === 1);
    const options = { id: flow.id('backoff'), attempts: 2, backoff: 300 };
    const { id } = await producer.submit([1], options);
    expect(await flow.complete(id)).toMatchObject({ failed: 1, outcome: 'failed' });
    const [first, second] = ran.filter(({ n }) => n === 1);
    expect(second!.at - first!.at).toBeGreaterThanOrEqual(299);
    expect(ran).toHaveLength(3);
  });

  test('for good by an UnrecoverableError, by class or by name, is not tried again', async ({
    flow,
  }) => {
    const named = Object.assign(new Error('no'), { name: 'UnrecoverableError' });
    const { ran, handler } = flaky((n) => (n === 0 ? new UnrecoverableError('no') : named));
    await flow.worker({ handler }).start();
    const { id } = await flow.producer().submit([0, 1], { attempts: 9, backoff: 3_600_000 });
    expect(await flow.complete(id)).toMatchObject({ failed: 2 });
    expect(ran).toHaveLength(2);
    expect(await flow.request(id).failures([0])).toEqual([
      expect.stringContaining('UnrecoverableError'),
    ]);
  });

  test('comes back when its handler said, whatever the backoff', async ({ flow }) => {
    const { handler } = flaky((n, attempt, context) => {
      context.retryAfter(n);
      return attempt === 1 && new Error('no');
    });
    await flow.worker({ handler }).start();
    const options = { attempts: 2, backoff: 3_600_000 };
    const { id } = await flow.producer().submit([0, 10], options);
    expect(await flow.complete(id)).toMatchObject({ succeeded: 2 });
  });

  test('waits for as long as the function of its worker says', async ({ flow }) => {
    const { handler } = flaky((_, attempt) => attempt < 3 && new Error(`no ${attempt}`));
    const asked: [number, string, number][] = [];
    const backoff = (attempt: number, error: unknown, { index }: HandlerContext) => {
      asked.push([attempt, (error as Error).message, index]);
      return 1;
    };
    await flow.worker({ handler, backoff }).start();
    const options = { attempts: 3, backoff: { type: 'custom', delayMs: 3_600_000 } } as const;
    const { id } = await flow.producer().submit([7], options);
    expect(await flow.complete(id)).toMatchObject({ succeeded: 1 });
    expect(asked).toEqual([
      [1, 'no 1', 0],
      [2, 'no 2', 0],
    ]);
  });

  const wrong: Record<string, (() => number) | undefined> = {
    'has no function': undefined,
    'has a function that says no time': () => Number.NaN,
    'has a function that throws': () => {
      throw new Error('broken');
    },
  };
  for (const [what, backoff] of Object.entries(wrong)) {
    test(`waits for delayMs where its worker ${what}, which is said once`, async ({ flow }) => {
      const { handler } = flaky((_, attempt) => attempt < 3 && new Error('no'));
      await flow.worker({ handler, ...(backoff && { backoff }) }).start();
      const options = { attempts: 3, backoff: { type: 'custom', delayMs: 5 } } as const;
      const { id } = await flow.producer().submit(numbers(5), options);
      expect(await flow.complete(id)).toMatchObject({ succeeded: 5 });
      expect(flow.log.lines.filter(({ what }) => /backoff/.test(what))).toHaveLength(1);
    });
  }
});

describe('a handler that holds its request back', () => {
  test('gives the sub-request back at no attempt, and holds the others too', async ({ flow }) => {
    let held = 0;
    const starts: number[] = [];
    const attempts = new Set<number>();
    const handler = (_: number, context: HandlerContext) => {
      starts.push(performance.now());
      attempts.add(context.attempt);
      if (held > 0) return 1;
      held = performance.now();
      const error = context.holdRequest(600);
      expect(error).toBeInstanceOf(HeldError);
      throw error;
    };
    await flow.worker({ handler, concurrency: 1 }).start();
    await flow.worker({ handler, concurrency: 1 }).start();
    const { id } = await flow.producer().submit(numbers(20), { limit: 1 });
    expect(await flow.complete(id)).toMatchObject({ succeeded: 20 });
    expect(attempts).toEqual(new Set([1]));
    expect(starts).toHaveLength(21);
    for (const at of starts.slice(1)) expect(at - held).toBeGreaterThan(590);
  });

  test('does not hold other requests, and ends like any', async ({ flow }) => {
    const handler = (n: number, context: HandlerContext) => {
      if (n === 1) throw context.holdRequest(3_600_000);
      return n;
    };
    await flow.worker({ handler }).start();
    const producer = flow.producer();
    const held = await producer.open({ id: flow.id('held') });
    await held.append(1);
    await held.flush();
    await until(async () => {
      const seen = await flow.request(held.id).inspect();
      return Number(seen?.state['heldUntil']) > (seen?.now ?? 0) && seen?.inFlight === 0;
    });
    const { id } = await producer.submit([2, 3], { id: flow.id('free') });
    expect(await flow.complete(id)).toMatchObject({ succeeded: 2 });
    await held.cancel();
    expect(await flow.complete(held.id)).toMatchObject({ cancelled: 1 });
  });

  test('for an impossible time throws an error', async ({ flow }) => {
    const errors: string[] = [];
    const handler = (ms: number, context: HandlerContext) => {
      for (const call of [context.holdRequest, context.retryAfter]) {
        try {
          call(ms);
        } catch (error) {
          errors.push((error as Error).name);
        }
      }
    };
    await flow.worker({ handler }).start();
    const { id } = await flow.producer().submit([-1, 1.5, 1e12, '5' as never]);
    await flow.complete(id);
    expect(errors).toEqual(Array.from({ length: 8 }, () => 'InvalidOptionError'));
  });
});

describe('a request that is held or waits for a retry', () => {
  // Of each request its sub-requests: for how many ms the first run holds the request, or after how many it is retried.
  const dues: Record<string, readonly (readonly string[])[]> = {
    'a hold': [['hold 400']],
    'a retry': [['retry 400']],
    'a retry that is due during the hold': [['hold 700', 'retry 300']],
    'a retry that is due behind the hold': [['hold 300', 'retry 700']],
    'a longer hold, and a retry in each': [['hold 300', 'hold 900', 'retry 200', 'retry 600']],
    'retries one after the other': [['retry 900', 'retry 600', 'retry 300', 'hold 750']],
    'holds and retries of several requests': [
      ['retry 200', 'hold 900'],
      ['hold 700', 'retry 350'],
      ['hold 400', 'retry 0'],
    ],
  };
  for (const [what, requests] of Object.entries(dues)) {
    for (const [where, workers] of Object.entries({ 'one worker': 1, 'two workers': 2 })) {
      test(`goes on as soon as it is due: ${what}, with ${where}`, async ({ flow }) => {
        const begun = new Set<string>();
        const handler = (item: string, context: HandlerContext) => {
          const key = `${context.requestId} ${context.index}`;
          if (begun.has(key)) return;
          begun.add(key);
          const [act, ms] = item.split(' ');
          if (act === 'hold') throw context.holdRequest(Number(ms));
          context.retryAfter(Number(ms));
          throw new Error('no');
        };
        const producer = flow.producer();
        const resting = await restingAgenda(flow);
        for (let i = 0; i < workers; i += 1) await flow.worker({ handler }).start();
        const submit = (items: readonly string[], i: number) =>
          producer.submit([...items], { id: flow.id(`${i}`), attempts: 2 });
        for (const { id } of await Promise.all(requests.map(submit)))
          expect(await flow.complete(id)).toMatchObject({ failed: 0, outcome: 'succeeded' });
        expect(resting.ticks).toBe(1);
      });
    }
  }
});
