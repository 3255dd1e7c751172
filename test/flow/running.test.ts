/**
 * What runs: which sub-requests, where and for how long, and what the doctor says of those that run for long.
 */
import { Admin, type Finding, InvalidOptionError, NotFoundError } from 'piecework';
import { describe, expect } from 'vitest';
import { type Flow, gate, numbers, test } from '../support/flow.js';
import { until } from '../support/until.js';

const MINUTE = 60_000;

/** As if its worker had got it so long ago. */
async function age(flow: Flow, id: string, worker: string, index: number, ms: number) {
  const { work } = flow.request(id).keys;
  // A renewal makes it, of a small request.
  await until(async () => (await flow.connection.client.type(work)) === 'stream');
  const { generation } = (await flow.request(id).state()) as { generation: number };
  const entry = `${generation}-${index}`;
  const claim = ['workers', worker, 0, entry, 'IDLE', ms, 'JUSTID'] as const;
  await flow.connection.client.call('XCLAIM', work, ...claim);
}

const adminOf = (flow: Flow) => new Admin({ redis: flow.connection, queue: flow.queue });

/** A worker whose handlers of 0 and 1 run until they are let go. */
async function held(flow: Flow, items: number) {
  const over = gate();
  flow.after(() => over.open());
  const worker = flow.worker({
    concurrency: 2,
    leaseMs: 1_000,
    handler: (n: number, { progress }) => {
      if (n === 0) progress(40);
      return n < 2 ? over.opened : undefined;
    },
  });
  await worker.start();
  // The others first, so that it is known what is usual.
  const { id } = await flow.producer().submit([...numbers(items - 2, 2), 0, 1], { limit: 2 });
  const [first, second] = [items - 2, items - 1] as [number, number];
  await until(() => worker.running === 2);
  await until(async () => (await flow.request(id).state())?.succeeded === items - 2);
  return { id, worker, first, second, over };
}

describe('the running sub-requests of a request', () => {
  test('are listed with worker, time, attempt and progress, the longest first', async ({
    flow,
  }) => {
    const { id, worker, first, second, over } = await held(flow, 4);
    const admin = adminOf(flow);
    await age(flow, id, worker.id, second, 10 * MINUTE);
    const at = { worker: worker.id, attempt: 1, forMs: expect.any(Number), readAhead: false };
    await until(async () => (await admin.running(id))[1]?.progress === 40);
    const running = await admin.running(id);
    expect(running).toEqual([
      { ...at, index: second, progress: undefined },
      { ...at, index: first, progress: 40 },
    ]);
    expect(running[0]?.forMs).toBeGreaterThanOrEqual(10 * MINUTE);
    expect(await admin.running(id, { limit: 1 })).toMatchObject([{ index: second }]);
    expect(await admin.running(id, { longerThanMs: 9 * MINUTE })).toMatchObject([
      { index: second },
    ]);
    over.open();
    await flow.complete(id);
    expect(await admin.running(id)).toEqual([]);
  });

  test('run since they were given to their worker, however often the lease was renewed', async ({
    flow,
  }) => {
    const { id, worker, first } = await held(flow, 2);
    await age(flow, id, worker.id, first, 60 * MINUTE);
    const { request } = flow.request(id).keys;
    const lease = () => flow.connection.client.hget(request, `lease:${worker.id}`);
    for (let renewals = 0; renewals < 2; renewals += 1) {
      const before = await lease();
      await until(async () => (await lease()) !== before);
    }
    const [longest] = await adminOf(flow).running(id);
    expect(longest).toMatchObject({ index: first });
    expect(longest?.forMs).toBeGreaterThanOrEqual(60 * MINUTE);
  });

  test('do not include what waits for its next attempt', async ({ flow }) => {
    const over = gate();
    flow.after(() => over.open());
    const handler = async (n: number, { attempt }: { attempt: number }) => {
      if (attempt === 1) throw new Error('once');
      if (n === 0) await over.opened;
    };
    await flow.worker({ handler }).start();
    const backoff = { type: 'custom' } as const;
    const { id } = await flow.producer().submit([1, 2], { attempts: 2, backoff: 600_000 });
    const again = await flow
      .producer()
      .submit([0], { attempts: 2, backoff: { ...backoff, delayMs: 1 } });
    await until(async () => (await flow.request(id).inspect())?.delayed === 2);
    expect(await adminOf(flow).running(id)).toEqual([]);
    await until(async () => (await adminOf(flow).running(again.id))[0]?.attempt === 2);
    await flow.request(id).drop();
  });

  test('are read in pages, and no more is kept than asked for', async ({ flow }) => {
    const many = 1_500;
    const { id } = await flow.producer().submit(numbers(many), { limit: many });
    const commands = flow.request(id);
    const { generation } = (await commands.state()) as { generation: number };
    await commands.enter({
      generation,
      worker: 'holder',
      op: 1,
      want: many,
      leaseMs: 60_000,
      tasks: '*',
      epochs: ['1'],
    });
    for (let left = many; left > 0; ) {
      const read = await commands.read('holder', 500);
      left -= (read as unknown[]).length;
    }
    const all = await adminOf(flow).running(id, { limit: 10_000 });
    expect(new Set(all.map(({ index }) => index)).size).toBe(many);
    await age(flow, id, 'holder', many - 1, MINUTE);
    expect(await adminOf(flow).running(id, { limit: 3 })).toHaveLength(3);
    expect((await adminOf(flow).running(id))[0]).toMatchObject({ index: many - 1 });
    await commands.drop();
  });

  test('of a worker that has more than it may run say what waits there', async ({ flow }) => {
    const over = gate();
    flow.after(() => over.open());
    let ended = 0;
    const handler = () => (ended++ < 40 ? undefined : over.opened);
    const worker = flow.worker({ concurrency: 2, handler });
    await worker.start();
    const { id } = await flow.producer().submit(numbers(200));
    await until(async () => worker.running === 2 && (await adminOf(flow).running(id)).length > 2);
    const running = await adminOf(flow).running(id);
    const started = running.filter(({ readAhead }) => !readAhead);
    expect(started).toHaveLength(2);
    expect(running.slice(0, 2)).toEqual(started);
    over.open();
    await flow.complete(id);
  });

  test('of no request, or asked for wrongly, is a typed error', async ({ flow }) => {
    const admin = adminOf(flow);
    await expect(admin.running(flow.id('none'))).rejects.toThrow(NotFoundError);
    await expect(admin.running('x', { limit: 0 })).rejects.toThrow(InvalidOptionError);
    await expect(admin.running('x', { longerThanMs: -1 })).rejects.toThrow(InvalidOptionError);
  });
});

describe('the doctor', () => {
  const running = (findings: readonly Finding[]) =>
    findings
      .filter(({ check }) => check === 'running')
      .map(({ level, what }) => `${level} ${what}`);
  const fine = ['ok no handler runs far longer than usual'];

  test('warns of a handler that runs ten times as long as usual, a minute at least', async ({
    flow,
  }) => {
    const { id, worker, first } = await held(flow, 6);
    const admin = adminOf(flow);
    const median = async () => (await admin.workers())[0]?.longest[0]?.medianMs;
    await until(async () => (await median()) !== undefined);
    await age(flow, id, worker.id, first, 30_000);
    expect(running(await admin.doctor())).toEqual(fine);
    await age(flow, id, worker.id, first, 3 * MINUTE);
    expect(running(await admin.doctor())).toEqual([
      expect.stringMatching(
        new RegExp(
          `^warning ${id}: 1 sub-request running for more than \\d+ s \\(usual: .+\\): index ${first} for 3 min on ${worker.id}$`,
        ),
      ),
    ]);
  });

  test('waits for ten minutes if no worker knows a median, or for `slowMs`', async ({ flow }) => {
    const { id, worker, first } = await held(flow, 2);
    const admin = adminOf(flow);
    await age(flow, id, worker.id, first, 8 * MINUTE);
    expect(running(await admin.doctor())).toEqual(fine);
    expect(running(await admin.doctor({ slowMs: 5 * MINUTE })).join()).toContain(
      `index ${first} for 8 min`,
    );
    await age(flow, id, worker.id, first, 12 * MINUTE);
    expect(running(await admin.doctor()).join()).toContain(`for more than 10 min: index ${first}`);
  });
});

describe('the list of workers', () => {
  test('shows what runs longest there, and that a worker drains', async ({ flow }) => {
    const { id, worker, first, over } = await held(flow, 4);
    const admin = adminOf(flow);
    const listed = async () => (await admin.workers())[0];
    await until(async () => (await listed())?.longest.length);
    expect(await listed()).toMatchObject({
      draining: false,
      longest: [{ requestId: id, index: first, attempt: 1, startedAt: expect.any(Number) }],
    });
    const closed = worker.close({ timeoutMs: 60_000 });
    await until(async () => (await listed())?.draining);
    over.open();
    await closed;
    await flow.complete(id);
  });

  test('has workers of an earlier version, which report neither', async ({ flow }) => {
    const said = { host: 'h', pid: 1, concurrency: 1, running: 0, tasks: '*', startedAt: 1 };
    await flow.queueCommands.tick('old', JSON.stringify(said));
    const [old] = await adminOf(flow).workers();
    expect(old).toMatchObject({ id: 'old', draining: false, longest: [] });
    await flow.queueCommands.deregister('old');
  });
});
