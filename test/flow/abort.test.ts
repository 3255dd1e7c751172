import type { HandlerContext } from '@piecework/worker';
import { Piecework } from 'piecework';
import { describe, expect } from 'vitest';
import { heard, numbers, test } from '../support/flow.js';
import { until } from '../support/until.js';

/** A third of it is the time between two renewals: none comes in a test. */
const LEASE_MS = 600_000;
const WORKERS = 3;
const SLOTS = 10;

describe('before its next renewal', () => {
  for (const act of ['cancel', 'drop'] as const) {
    test(`every running handler of every worker is aborted by a ${act}`, async ({ flow }) => {
      const running = new Set<number>();
      const aborted = new Set<number>();
      const handler = (n: number, { signal }: HandlerContext) => {
        running.add(n);
        return new Promise<never>((_, reject) => {
          signal.addEventListener('abort', () => {
            aborted.add(n);
            reject(signal.reason);
          });
        });
      };
      for (let i = 0; i < WORKERS; i += 1)
        await flow.worker({ concurrency: SLOTS, leaseMs: LEASE_MS, handler }).start();
      // Who does not listen yet would learn it with the renewal.
      await heard(flow, WORKERS);
      const pw = new Piecework({ redis: flow.redis, queue: flow.queue });
      flow.after(() => pw.close());
      const limit = WORKERS * SLOTS;
      const request = await pw.submit(numbers(100), { id: flow.id('a'), limit });
      await until(() => running.size === limit);
      await request[act]();
      await until(() => aborted.size === limit);
      expect(running.size).toBe(limit);
      if (act === 'drop') return;
      expect(await flow.complete(request.id)).toMatchObject({ cancelled: 100, succeeded: 0 });
    });
  }
});
