/**
 * Servers that may evict keys that have an expiry (`volatile-` policies): unfinished work has none, and the loss of
 * everything that has one stops no work and runs nothing twice.
 * @module-tag own-server
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { requestKeys } from '@piecework/protocol';
import { Redis } from 'ioredis';
import { Piecework, RetryQueue } from 'piecework';
import { describe, expect } from 'vitest';
import { expiringWork } from '../support/expiry.js';
import { type Flow, numbers, test } from '../support/flow.js';
import { startOwnRedis } from '../support/redis.js';
import { until } from '../support/until.js';

/** Deletes each key that has an expiry, as a server may that is full. */
const EVICT = `
local count = 0
for _, key in ipairs(redis.call('KEYS', '*')) do
  if redis.call('PTTL', key) >= 0 then
    count = count + redis.call('DEL', key)
  end
end
return count`;

async function started(flow: Flow, policy = 'volatile-lru') {
  const { url, close } = await startOwnRedis(['--maxmemory', '500mb']);
  flow.after(close);
  const operator = new Redis(url);
  flow.after(() => operator.disconnect());
  await operator.config('SET', 'maxmemory-policy', policy);
  const pw = new Piecework({ redis: url, queue: flow.queue });
  flow.after(() => pw.close());
  return { url, operator, pw };
}

const codeOf = (call: Promise<unknown>) =>
  call.then(
    () => 'ok',
    ({ code }: { code: string }) => code,
  );

test('a server with any volatile- policy is used, one with any allkeys- policy is refused', async ({
  flow,
}) => {
  const { url, operator } = await started(flow);
  for (const kind of ['volatile', 'allkeys']) {
    for (const policy of ['lru', 'lfu', 'random', ...(kind === 'volatile' ? ['ttl'] : [])]) {
      await operator.config('SET', 'maxmemory-policy', `${kind}-${policy}`);
      await using pw = new Piecework({ redis: url, queue: flow.queue });
      const check = await pw.check().then(
        () => '',
        ({ message }: Error) => message,
      );
      if (kind === 'volatile') expect(check).toBe('');
      else
        expect(check).toMatch(/maxmemory-policy is allkeys-.*noeviction.*operations\.md#eviction/);
    }
  }
});

/** Submits requests of many kinds; their handlers count the runs of each item. */
async function busy(flow: Flow, url: string, pw: Piecework) {
  const runs = new Map<string, number>();
  const workers = [1, 2].map(() =>
    flow.worker({
      redis: url,
      concurrency: 5,
      handler: async (item: unknown) => {
        const name = String(item);
        const run = (runs.get(name) ?? 0) + 1;
        runs.set(name, run);
        await sleep(Math.random() * 30);
        if (name.startsWith('again') && run === 1) throw new Error('once more');
        if (name.startsWith('fails')) throw new Error('as it should');
        return name;
      },
    }),
  );
  await Promise.all(workers.map((worker) => worker.start()));
  const items: string[] = [];
  const submit = (name: string, n: number, options: object = {}) => {
    const own = numbers(n).map((i) => `${name}-${i}`);
    items.push(...own);
    return pw.submit(own, { id: flow.id(name), ...options });
  };
  const ends: Promise<string>[] = [];
  const begin = async (name: string, n: number, options: object = {}) => {
    const request = await submit(name, n, options);
    ends.push(codeOf(request.completion()));
    return request;
  };
  // A call on a request may be answered after the request has ended and its keys have gone.
  const end = async (call: Promise<unknown>) => {
    const code = codeOf(call);
    ends.push(code);
    await code;
  };
  await begin('large', 300, { limit: 3 });
  await begin('again', 40, { attempts: 2, backoff: { delayMs: 50 } });
  await begin('fails', 20, { toleratedFailures: 20 });
  await begin('later', 20, { delayMs: 700 });
  const held = await begin('paused', 40, { limit: 2 });
  await held.pause();
  const small = async () => {
    for (const n of numbers(60)) {
      await end(begin(`small-${n}`, 1 + (n % 4)));
      await sleep(20);
    }
  };
  const open = await pw.open({ id: flow.id('open') });
  const grow = async () => {
    for (const n of numbers(30)) {
      items.push(`open-${n}`);
      await open.append(`open-${n}`);
      await sleep(30);
    }
    await end(open.seal());
  };
  await Promise.all([small(), grow()]);
  await end(held.resume());
  return { runs, items, ends };
}

/** Calls `each` again and again, at random moments, until `work` is done. */
async function meanwhile<T>(work: Promise<T>, each: () => Promise<unknown>): Promise<T> {
  let done = false;
  const ended = work.finally(() => {
    done = true;
  });
  const loop = async () => {
    while (!done) {
      await each();
      await sleep(Math.random() * 25);
    }
  };
  const [result] = await Promise.all([ended, loop()]);
  return result;
}

/** An item that fails is run once, one that is to be tried again twice. */
const wanted = (items: readonly string[]) =>
  new Map(items.map((item) => [item, item.startsWith('again') ? 2 : 1]));

describe('keys with an expiry', () => {
  test('belong to no unfinished work at any moment', async ({ flow }) => {
    const { url, operator, pw } = await started(flow);
    const seen = new Set<string>();
    let walks = 0;
    const work = async () => {
      const { runs, items, ends } = await busy(flow, url, pw);
      expect(new Set(await Promise.all(ends))).toEqual(new Set(['ok']));
      expect(runs).toEqual(wanted(items));
      const again = await pw.request(flow.id('fails')).redrive();
      expect(again.redriven).toBe(20);
      await pw.request(flow.id('fails')).completion();
    };
    await meanwhile(work(), async () => {
      walks += 1;
      for (const key of await expiringWork(operator)) seen.add(key);
    });
    expect([...seen]).toEqual([]);
    expect(walks).toBeGreaterThan(20);
  });

  test('may all be deleted at any moment: all work ends, and nothing runs twice', async ({
    flow,
  }) => {
    const { url, operator, pw } = await started(flow);
    let deleted = 0;
    const work = async () => {
      const busyWork = await busy(flow, url, pw);
      return { ...busyWork, ended: await Promise.all(busyWork.ends) };
    };
    const { runs, items, ended } = await meanwhile(work(), async () => {
      deleted += (await operator.eval(EVICT, 0)) as number;
    });
    // Of a request that has ended its caller may learn only that it is gone.
    for (const code of ended) expect(['ok', 'EXPIRED', 'LOST']).toContain(code);
    expect(runs).toEqual(wanted(items));
    expect(deleted).toBeGreaterThan(20);
    await until(async () => (await pw.admin.counts()).open === 0, { what: 'no request is open' });
  });

  test('of a RetryQueue may all be deleted at any moment: each item is done', async ({ flow }) => {
    const { url, operator } = await started(flow);
    await using queue = new RetryQueue<number>({ redis: url, name: flow.queue });
    const done = new Set<number>();
    const ended = new AbortController();
    const consume = async () => {
      for await (const item of queue.items({ demand: 5, signal: ended.signal })) {
        await sleep(5);
        if (item.numFailures === 0 && item.payload % 3 === 0) await item.retry({ delayMs: 10 });
        else if (await item.done()) done.add(item.payload);
        if (done.size === 100) ended.abort();
      }
    };
    const put = async () => {
      for (const n of numbers(100)) await queue.put(n);
    };
    await meanwhile(Promise.all([consume(), put()]), () => operator.eval(EVICT, 0));
    expect(done).toEqual(new Set(numbers(100)));
    expect(await queue.counts()).toMatchObject({ waiting: 0, leased: 0 });
  });
});

test('results and failures that were evicted are an error, not an empty list', async ({ flow }) => {
  const { url, operator, pw } = await started(flow);
  const worker = flow.worker({
    redis: url,
    handler: async (n: number) => {
      if (n === 2) throw new Error('two');
      // Longer than what stays in the state.
      return 'x'.repeat(20_000);
    },
  });
  await worker.start();
  const request = await pw.submit([1, 2, 3], { id: flow.id('evicted') });
  await request.completion();
  const keys = requestKeys(request.id);
  await operator.del(keys.results, keys.failed);
  await using other = new Piecework({ redis: url, queue: flow.queue });
  const all = async (list: AsyncIterable<unknown>) => {
    for await (const _ of list);
  };
  const there = other.request(request.id);
  expect(await codeOf(all(there.results()))).toBe('RESULTS_LOST');
  expect(await codeOf(all(there.failures()))).toBe('RESULTS_LOST');
  expect(await codeOf(there.failureGroups())).toBe('RESULTS_LOST');
  expect(await codeOf(there.redrive())).toBe('RESULTS_LOST');
});

test('a pause of the queue with an end outlasts an eviction', async ({ flow }) => {
  const { operator, pw } = await started(flow);
  const { keys } = flow.queueCommands;
  await pw.admin.pauseQueue({ forMs: 3_600_000 });
  expect(await operator.pttl(keys.paused)).toBe(-1);
  await operator.eval(EVICT, 0);
  expect((await pw.admin.counts()).pausedUntil).toBeGreaterThan(Date.now());
});
