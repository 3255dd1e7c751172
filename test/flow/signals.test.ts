import { getEventListeners } from 'node:events';
import { Notifier } from '@piecework/notifier';
import { LongTimer, onAbort } from '@piecework/protocol';
import { IdQueue, RetryQueue, Scheduler } from '@piecework/queues';
import { describe, expect, vi } from 'vitest';
import { type Flow, numbers, test } from '../support/flow.js';
import { until } from '../support/until.js';

/*
 * A signal of the user may live as long as the process and be passed to every call: nothing of a call is
 * left on it, however many calls there are at once and one after the other.
 */

const CALLS = 200;

/** What hangs on a signal: listeners, and the signals that `AbortSignal.any` made of it. */
function hangsOn(signal: AbortSignal): number {
  const symbols = Object.getOwnPropertySymbols(signal);
  const dependants = symbols.find(({ description }) => description === 'kDependantSignals');
  const made = dependants && (signal as unknown as Record<symbol, Set<unknown>>)[dependants];
  return getEventListeners(signal, 'abort').length + (made?.size ?? 0);
}

/** Warnings of Node while the test runs, as of a leak. */
function warningsOf(flow: Flow): string[] {
  const warnings: string[] = [];
  const note = ({ name, message }: Error) => warnings.push(`${name}: ${message}`);
  process.on('warning', note);
  flow.after(() => process.off('warning', note));
  return warnings;
}

/** What it leaves on the server is remembered for a while. */
function leavesKeys(flow: Flow): void {
  flow.after(async () => {
    for (const key of await flow.keys()) await flow.connection.client.unlink(key);
  });
}

/** Some time after it happened, Node warns. */
const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Something that takes a signal, and can be called any number of times. */
type Call = (signal: AbortSignal, n: number) => Promise<unknown>;

const calls: Record<string, (flow: Flow) => Promise<Call>> = {
  'submissions of arrays': async (flow) => {
    const producer = flow.producer();
    return (signal) => producer.submit([1], { signal });
  },
  'submissions of streams': async (flow) => {
    const producer = flow.producer();
    const items = async function* () {
      for (const n of numbers(3)) {
        await turn();
        yield n;
      }
    };
    return (signal) => producer.submit(items(), { signal });
  },
  'submissions under a key': async (flow) => {
    leavesKeys(flow);
    const producer = flow.producer();
    return (signal, n) => producer.submit([1], { signal, dedupe: { key: flow.id(`key${n}`) } });
  },
  'waits for a completion': async (flow) => {
    const { id } = await flow.producer().submit([]);
    const notifier = new Notifier({ redis: flow.redis, queue: flow.queue });
    flow.after(() => notifier.close());
    return (signal) => notifier.completion(id, { signal });
  },
  'results and progress': async (flow) => {
    const { id } = await flow.producer().submit([]);
    const notifier = new Notifier({ redis: flow.redis, queue: flow.queue });
    flow.after(() => notifier.close());
    return async (signal) => {
      for await (const _ of notifier.results(id, { signal })) throw new Error('a result');
      for await (const { status } of notifier.progress(id, { signal }))
        expect(status).toBe('complete');
    };
  },
  'pulls of a queue of ids': async (flow) => {
    const queue = await IdQueue.join(flow.id('ids'), { redis: flow.redis });
    flow.after(async () => {
      await queue.drop();
      await queue.close();
    });
    return (signal) => queue.pull({ signal });
  },
  'rests of a queue of ids': async (flow) => {
    const options = { redis: flow.redis, rest: { after: 1, ms: 2 }, timeoutMs: 600_000 };
    const queue = await IdQueue.join(flow.id('ids'), options);
    flow.after(async () => {
      await queue.drop();
      await queue.close();
    });
    await queue.add('held');
    await queue.pull();
    return (signal) => queue.pull({ signal });
  },
  'takes of a scheduler': async (flow) => {
    const scheduler = new Scheduler({ redis: flow.redis, name: flow.id('times') });
    flow.after(async () => {
      await scheduler.drop();
      await scheduler.close();
    });
    return (signal) => scheduler.takeDue({ signal, waitMs: 5 });
  },
  'streams of a retry queue': async (flow) => {
    leavesKeys(flow);
    const queue = new RetryQueue<number>({ redis: flow.redis, name: flow.id('retry') });
    flow.after(async () => {
      await queue.drop();
      await queue.close();
    });
    return async (signal, n) => {
      await queue.put(n);
      for await (const task of queue.items({ signal })) {
        await task.done();
        break;
      }
    };
  },
};

describe('nothing is left on a signal, and Node warns of nothing, after', () => {
  test.for(Object.entries(calls))('%s', async ([, prepare], { flow }) => {
    const warnings = warningsOf(flow);
    const { signal } = new AbortController();
    const call = await prepare(flow);
    // One after the other, and many at once.
    for (const n of numbers(20)) await call(signal, n);
    await Promise.all(numbers(CALLS, 20).map((n) => call(signal, n)));
    expect(hangsOn(signal)).toBe(0);
    await turn();
    expect(warnings).toEqual([]);
  });

  test('handlers of a retry queue, many at once', async ({ flow }) => {
    const warnings = warningsOf(flow);
    const never = new AbortController();
    for (const n of numbers(20)) {
      const queue = new RetryQueue<number>({ redis: flow.redis, name: flow.id(`retry${n}`) });
      flow.after(() => queue.close());
      const consuming = queue.consume(() => {}, { signal: never.signal });
      await queue.close();
      await consuming;
    }
    expect(hangsOn(never.signal)).toBe(0);
    expect(warnings).toEqual([]);
  });

  test('consumers that pull, each to its end', async ({ flow }) => {
    const warnings = warningsOf(flow);
    const { signal } = new AbortController();
    for (let n = 0; n < 3; n += 1) {
      const worker = flow.worker({ concurrency: 20 });
      const { id } = await flow.producer().submit(numbers(20), { limit: 20 });
      const consumers = numbers(20).map(async () => {
        for await (const s of worker.subRequests({ signal })) s.succeed();
      });
      await flow.complete(id);
      await worker.close();
      await Promise.all(consumers);
    }
    expect(hangsOn(signal)).toBe(0);
    await turn();
    expect(warnings).toEqual([]);
  });

  test('submissions that wait while Redis refuses, which one abort ends', async ({ flow }) => {
    const warnings = warningsOf(flow);
    const controller = new AbortController();
    const { signal } = controller;
    const producer = flow.producer();
    // No source ever gives its second item.
    const items = async function* () {
      yield 1;
      await new Promise(() => {});
    };
    const ids = numbers(30).map((n) => flow.id(`aborted${n}`));
    const submissions = ids.map((id) => producer.submit(items(), { id, signal }));
    const settled = Promise.allSettled(submissions);
    await until(async () => {
      const states = await Promise.all(ids.map((id) => flow.request(id).state()));
      return states.every((state) => state?.status === 'open');
    });
    controller.abort(new Error('enough'));
    for (const one of await settled)
      expect(one).toMatchObject({ reason: { name: 'AbortError', cause: { message: 'enough' } } });
    expect(hangsOn(signal)).toBe(0);
    await turn();
    expect(warnings).toEqual([]);
  });
});

describe('who listens to a signal', () => {
  test('shares one listener with all others, until the last has left', () => {
    const controller = new AbortController();
    const { signal } = controller;
    const heard: number[] = [];
    const stops = numbers(100).map((n) => onAbort(signal, () => heard.push(n)));
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    for (const stop of stops.slice(2)) stop();
    controller.abort();
    expect(heard).toEqual([0, 1]);
    onAbort(signal, () => heard.push(2));
    expect(heard).toEqual([0, 1, 2]);
    for (const stop of stops) stop();
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });
});

const DAY_MS = 86_400_000;

describe('a time of more than 24.8 days', () => {
  test('is waited for in parts', () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    try {
      let fired = 0;
      new LongTimer(60 * DAY_MS, () => {
        fired += 1;
      });
      const cleared = new LongTimer(60 * DAY_MS, () => {
        fired += 1_000;
      });
      vi.advanceTimersByTime(59 * DAY_MS);
      expect(fired).toBe(0);
      cleared.clear();
      vi.advanceTimersByTime(2 * DAY_MS);
      expect(fired).toBe(1);
    } finally {
      vi.useRealTimers();
    }
  });

  test.for<[string, Parameters<Flow['worker']>[0]['handler']]>([
    [
      'of a handler that asks to be tried again then',
      (_: unknown, context) => {
        context.retryAfter(30 * DAY_MS);
        throw new Error('later');
      },
    ],
    [
      'of a handler that holds its request back',
      (_: unknown, context) => {
        throw context.holdRequest(30 * DAY_MS);
      },
    ],
    [
      'of a handler that holds the queue back',
      (_: unknown, context) => {
        throw context.holdQueue(30 * DAY_MS);
      },
    ],
  ])('%s is no time that is over at once', async ([, handler], { flow }) => {
    const warnings = warningsOf(flow);
    let runs = 0;
    leavesKeys(flow);
    const counted: typeof handler = (payload, context) => {
      runs += 1;
      return handler?.(payload, context);
    };
    const worker = flow.worker({ handler: counted, concurrency: 1 });
    let drained = false;
    worker.on('drained', () => {
      drained = true;
    });
    await worker.start();
    await flow.producer().submit([1], { attempts: 2 });
    // It was given back, and whatever timer is set, is.
    await until(() => drained && runs === 1);
    await turn();
    expect(runs).toBe(1);
    expect(warnings).toEqual([]);
  });
});
