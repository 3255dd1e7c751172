import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { gate, numbers, test } from '../support/flow.js';
import { startProgram } from '../support/processes.js';
import { until } from '../support/until.js';

test('never runs more sub-requests at once than the limit, and as many', async ({ flow }) => {
  const runs = new Map<number, number>();
  let now = 0;
  let most = 0;
  const workers = numbers(4).map(() =>
    flow.worker({
      concurrency: 50,
      handler: async (payload: number) => {
        now += 1;
        most = Math.max(most, now);
        runs.set(payload, (runs.get(payload) ?? 0) + 1);
        await sleep(1 + (payload % 5));
        now -= 1;
        return payload;
      },
    }),
  );
  await Promise.all(workers.map((worker) => worker.start()));
  const { id } = await flow.producer().submit(numbers(2_000), { limit: 7 });
  const state = await flow.complete(id);
  expect(state).toMatchObject({ outcome: 'succeeded', succeeded: 2_000, failed: 0 });
  expect(most).toBe(7);
  expect(runs.size).toBe(2_000);
  expect([...runs.values()].every((times) => times === 1)).toBe(true);
});

/** The greatest number of intervals that overlap, from `start …` and `end …` lines. */
function overlap(lines: readonly string[]): number {
  const changes = lines.map((line) => {
    const [what, , , at] = line.split(' ');
    return { at: BigInt(at as string), by: what === 'start' ? 1 : -1 };
  });
  // An end at the same nanosecond goes first.
  changes.sort((a, b) => (a.at === b.at ? a.by - b.by : a.at < b.at ? -1 : 1));
  let now = 0;
  let most = 0;
  for (const { by } of changes) {
    now += by;
    most = Math.max(most, now);
  }
  return most;
}

test('keeps the limit over several processes', async ({ flow }) => {
  const folder = await mkdtemp(join(tmpdir(), 'piecework-limit-'));
  flow.after(() => rm(folder, { recursive: true }));
  const logs = numbers(4).map((n) => join(folder, String(n)));
  const workers = logs.map((log) =>
    startProgram(flow, 'worker', {
      options: { redis: flow.redis, queue: flow.queue, concurrency: 50 },
      handle: { minMs: 5, maxMs: 20 },
      log,
    }),
  );
  for (const worker of workers) await worker.said();
  const { id } = await flow.producer().submit(numbers(5_000), { limit: 7 });
  expect(await flow.complete(id)).toMatchObject({ outcome: 'succeeded', succeeded: 5_000 });
  for (const worker of workers) worker.kill('SIGTERM');
  for (const worker of workers) expect(await worker.ended).toBe(0);
  const lines = (await Promise.all(logs.map((log) => readFile(log, 'utf8'))))
    .flatMap((text) => text.split('\n'))
    .filter(Boolean);
  expect(lines.filter((line) => line.startsWith('start'))).toHaveLength(5_000);
  expect(overlap(lines)).toBe(7);
});

test('hands the slots that one request leaves to others', async ({ flow }) => {
  let now = 0;
  let most = 0;
  const met = gate();
  const handler = async (payload: number) => {
    now += 1;
    most = Math.max(most, now);
    // By chance alone all of them need not be taken at one moment.
    await met.opened;
    await sleep(1 + (payload % 3));
    now -= 1;
  };
  await flow.worker({ concurrency: 12, handler }).start();
  const producer = flow.producer();
  const submitted = await Promise.all(
    numbers(5).map(() => producer.submit(numbers(300), { limit: 4 })),
  );
  await until(() => now === 12, { what: 'all slots are taken, of which one request takes four' });
  met.open();
  for (const { id } of submitted) await flow.complete(id);
  expect(most).toBe(12);
});
