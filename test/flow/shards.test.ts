import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startRedis } from '@piecework/embedded';
import { InvalidOptionError, queueKeys, Shards, shardOf } from '@piecework/protocol';
import { type HandlerContext, SlotPool, Worker } from '@piecework/worker';
import fc from 'fast-check';
import { Admin, Notifier, Piecework, Producer } from 'piecework';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { judgeTurns } from '../scale/delayed-order.mjs';
import { type Flow, gate, Log, numbers, test } from '../support/flow.js';
import { freshName } from '../support/given.js';
import { playsAll } from '../support/mode.js';
import { startProgram } from '../support/processes.js';
import { againstCluster } from '../support/redis.js';
import { until } from '../support/until.js';

const SHARDS = 4;

/** Everything of a queue with shards, closed when the test is over. */
function sharded(flow: Flow, shards = SHARDS): Piecework {
  const { redis, queue } = flow;
  const pw = new Piecework({ redis, queue, shards });
  flow.after(() => pw.close());
  return pw;
}

/** An id of this shard that no other test uses. */
function idIn(flow: Flow, shard: number, name: string, shards = SHARDS): string {
  const n = numbers(1_000).find((i) => shardOf(flow.id(`${name}-${i}`), shards) === shard);
  return flow.id(`${name}-${n}`);
}

const everyShard = numbers(SHARDS);

async function listed(pw: Piecework, state: 'open' | 'ended' | 'all'): Promise<string[]> {
  const ids: string[] = [];
  for await (const { id } of pw.admin.list({ state })) ids.push(id);
  return ids;
}

describe('a queue of several shards', () => {
  test('spreads its requests by their ids, and one worker serves them all', async ({ flow }) => {
    const pw = sharded(flow);
    const door = gate();
    const requests = await Promise.all(
      everyShard.flatMap((shard) =>
        numbers(3).map((n) =>
          pw.submit(numbers(5), { id: idIn(flow, shard, `r${n}`), limit: 2, priority: n }),
        ),
      ),
    );
    for (const shard of everyShard) {
      const keys = queueKeys(`${flow.queue}.${shard}`);
      expect((await flow.connection.client.hkeys(keys.open)).sort()).toEqual(
        numbers(3).map((n) => idIn(flow, shard, `r${n}`)),
      );
    }
    expect(await flow.connection.client.exists(queueKeys(flow.queue).open)).toBe(0);
    expect(await pw.admin.counts()).toMatchObject({ open: 12, workers: 0 });
    const ids = requests.map(({ id }) => id).sort();
    expect((await listed(pw, 'open')).sort()).toEqual(ids);

    const handler = async (n: number) => {
      await door.opened;
      return 2 * n;
    };
    const worker = flow.worker({ shards: SHARDS, concurrency: 3, handler });
    await worker.start();
    await until(() => worker.running === 3, { what: 'its slots are taken' });
    expect(worker.health()).toMatchObject({ ready: true, queue: flow.queue, concurrency: 3 });
    expect((await pw.admin.workers()).map(({ id }) => id)).toEqual([worker.id]);
    expect(await pw.admin.counts()).toMatchObject({ workers: 1 });
    door.open();
    for (const request of requests) {
      expect(await request.completion()).toMatchObject({ status: 'succeeded' });
      const values: unknown[] = [];
      for await (const item of request.results({ order: 'index' }))
        values.push(item.status === 'succeeded' && item.value);
      expect(values).toEqual([0, 2, 4, 6, 8]);
    }
    await until(async () => (await pw.admin.counts()).open === 0);
    expect((await listed(pw, 'ended')).sort()).toEqual(ids);
    expect(await pw.admin.counts()).toMatchObject({ ended: { succeeded: 12, failed: 0 } });
  });

  test('obeys for each request who cancels, pauses, changes, redrives or drops it', async ({
    flow,
  }) => {
    const pw = sharded(flow);
    let fails = true;
    const handler = (n: number) => {
      if (n === 1 && fails) throw new Error('not yet');
      return n;
    };
    for (const shard of everyShard) {
      const id = idIn(flow, shard, 'one');
      const request = await pw.submit([0, 1], { id, priority: 90 });
      await request.pause();
      expect((await request.status()).why).toBe('it is paused. Resume it');
      await request.update({ priority: 5, limit: 1 });
      await request.resume();
      const keys = queueKeys(`${flow.queue}.${shard}`);
      expect(await flow.connection.client.llen(keys.list(5))).toBe(1);
      const cancelled = await pw.submit([0], { id: idIn(flow, shard, 'cancelled') });
      expect(await cancelled.cancel()).toEqual({ status: 'complete', outcome: 'cancelled' });
    }
    await flow.worker({ shards: SHARDS, handler }).start();
    const all = everyShard.map((shard) => pw.request(idIn(flow, shard, 'one')));
    for (const request of all) expect((await request.completion()).counts.failed).toBe(1);
    await until(async () => (await pw.admin.errors()).length === SHARDS);
    fails = false;
    for (const request of all) {
      expect(await request.redrive()).toMatchObject({ redriven: 1 });
      const redriven = () => request.completion();
      await until(async () => (await redriven()).counts.succeeded === 2);
      await request.drop();
    }
    await until(async () => (await pw.admin.counts()).open === 0);
  });

  test('is paused and resumed as a whole, also by a handler', async ({ flow }) => {
    const pw = sharded(flow);
    const started: string[] = [];
    let hold = false;
    const worker = flow.worker({
      shards: SHARDS,
      handler: (_: number, { requestId, holdQueue }: HandlerContext) => {
        if (hold) throw holdQueue(60_000);
        started.push(requestId);
      },
    });
    await pw.admin.pauseQueue();
    await worker.start();
    const requests = await Promise.all(
      everyShard.map((shard) => pw.submit([0], { id: idIn(flow, shard, 'p') })),
    );
    expect(await pw.admin.counts()).toMatchObject({ pausedUntil: 0, open: SHARDS });
    expect(started).toEqual([]);
    hold = true;
    await pw.admin.resumeQueue();
    await until(async () => Number((await pw.admin.counts()).pausedUntil) > 0);
    for (const shard of everyShard) {
      const { paused } = queueKeys(`${flow.queue}.${shard}`);
      await until(() => flow.connection.client.exists(paused), { what: `${paused} is there` });
    }
    hold = false;
    expect(started).toEqual([]);
    await pw.admin.resumeQueue();
    for (const request of requests) await request.completion();
    expect(started.sort()).toEqual(requests.map(({ id }) => id).sort());
  });

  test('loses nothing of a worker that dies', async ({ flow }) => {
    const pw = sharded(flow);
    const requests = await Promise.all(
      everyShard.map((shard) => pw.submit(numbers(3), { id: idIn(flow, shard, 'd'), limit: 2 })),
    );
    const { redis, queue } = flow;
    const options = { redis, queue, shards: SHARDS, concurrency: 8, leaseMs: 1_000, maxBlockMs: 0 };
    const victim = startProgram(flow, 'worker', { options, handle: { hold: true } });
    const { ready } = await victim.said<{ ready: string }>();
    for (const request of requests)
      await until(async () => (await request.status()).counts.inFlight === 2);
    victim.kill('SIGKILL');
    await victim.ended;
    await flow.worker({ shards: SHARDS, leaseMs: 1_000, handler: (n: number) => n }).start();
    for (const request of requests)
      expect((await request.completion()).counts).toMatchObject({ succeeded: 3, failed: 0 });
    for (const shard of new Shards(flow.connection, queue, SHARDS).all)
      await shard.deregister(ready);
  });

  test('finds a request by its key of deduplication, whatever shards the two are of', async ({
    flow,
  }) => {
    const [one, other] = [sharded(flow), sharded(flow)];
    const keys = numbers(12).map((n) => flow.id(`key-${n}`));
    const pairs = await Promise.all(
      keys.map((key) => {
        const options = { dedupe: { key, periodMs: 60_000 } };
        return Promise.all([one.submit([1, 2], options), other.submit([1, 2], options)]);
      }),
    );
    for (const [a, b] of pairs) expect(a.id).toBe(b.id);
    const apart = pairs.filter(([{ id }], i) => shardOf(id, 4) !== shardOf(keys[i] as string, 4));
    expect(apart.length).toBeGreaterThan(0);
    expect(await one.admin.counts()).toMatchObject({ open: 12 });
    for (const [{ id }] of pairs) await one.admin.drop(id);
    for (const key of keys) {
      const { dedupe } = new Shards(flow.connection, flow.queue, 4).of(key).keys;
      expect(await flow.connection.client.unlink(dedupe(key))).toBe(1);
    }
  });

  test('may get more of them while it works: what is there is found, and known again', async ({
    flow,
  }) => {
    const [few, many] = [sharded(flow, 2), sharded(flow, 3)];
    // Those that are elsewhere now.
    const ids = numbers(40)
      .map((n) => flow.id(`m-${n}`))
      .filter((id) => shardOf(id, 2) !== shardOf(id, 3))
      .slice(0, 6);
    for (const id of ids) await few.submit([1, 2], { id });
    for (const id of ids) {
      expect(await many.submit([1, 2], { id })).toMatchObject({ id });
      await many.request(id).update({ limit: 1 });
    }
    expect((await listed(many, 'open')).sort()).toEqual(ids.toSorted());
    const [cancelled, ...others] = ids as [string, ...string[]];
    expect(await many.request(cancelled).cancel()).toMatchObject({ status: 'complete' });
    let fails = true;
    const handler = (n: number) => {
      if (fails && n === 2) throw new Error('at first');
    };
    await flow.worker({ shards: 3, handler }).start();
    for (const id of others) expect((await many.request(id).completion()).counts.failed).toBe(1);
    fails = false;
    for (const id of others) {
      await many.request(id).redrive();
      await until(async () => (await many.request(id).completion()).counts.succeeded === 2);
    }
    await until(async () => (await many.admin.counts()).open === 0);
  });

  test('is checked by the doctor, shard by shard, and what one lost is repaired', async ({
    flow,
  }) => {
    const pw = sharded(flow);
    const lost = idIn(flow, 2, 'lost');
    const request = await pw.submit([1], { id: lost });
    await pw.submit([1], { id: idIn(flow, 1, 'kept') });
    const { open, agenda, wait } = queueKeys(`${flow.queue}.2`);
    await flow.connection.client.unlink(open, agenda, wait);
    const findings = await pw.admin.doctor({ deep: true });
    expect(findings.find(({ level, check }) => level === 'error' && check === 'orphans')).toEqual(
      expect.objectContaining({ what: expect.stringContaining(lost) }),
    );
    const paused = findings.filter(({ check }) => check === 'queue').map(({ what }) => what);
    expect(paused.sort()).toEqual(
      everyShard.map((n) => `${flow.queue}.${n}: queue ${flow.queue}.${n} is not paused`),
    );
    expect(await pw.admin.repair()).toEqual([lost]);
    expect(
      (await pw.admin.doctor({ deep: true })).filter(({ check }) => check === 'orphans'),
    ).toEqual(expect.not.arrayContaining([expect.objectContaining({ level: 'error' })]));
    await flow.worker({ shards: SHARDS, handler: () => {} }).start();
    await request.completion();
  });

  test('asks of a retry queue without shards, of a worker for every shard', async ({ flow }) => {
    const users = { 'retry-queue': 'nobody-here', worker: 'nobody-either' };
    const findings = await sharded(flow).admin.doctor({ users });
    const about = (user: string) =>
      new Set(findings.map(({ what }) => what).filter((what) => what.endsWith(user)));
    expect([...about('nobody-here')].some((what) => what.startsWith(flow.queue))).toBe(false);
    for (const n of everyShard)
      expect(
        [...about('nobody-either')].some((what) => what.startsWith(`${flow.queue}.${n}: `)),
      ).toBe(true);
  });

  test.skipIf(againstCluster)(
    'costs a worker one blocking connection for each, and no other',
    async ({ flow }) => {
      let door = gate();
      const name = freshName('counted');
      const connections = async () => {
        const list = String(await (flow.connection.client as never as Lister).client('LIST'));
        const lines = list.split('\n').filter((line) => !line.includes('flow-counts'));
        return lines.flatMap((line) => /^id=\d+/.exec(line) ?? []);
      };
      const before = new Set(await connections());
      const added = async () => (await connections()).filter((id) => !before.has(id)).length;
      const handler = () => door.opened;
      const worker = flow.worker({ shards: SHARDS, concurrency: 2, maxBlockMs: 0, handler });
      await worker.start();
      await until(async () => (await added()) === 2 + SHARDS);
      const redis = flow.connection.client;
      const producer = new Producer({ redis, queue: flow.queue, shards: SHARDS });
      // One from which the others are told to stop waiting, once all slots are taken while they do.
      let told = false;
      for (let i = 0; !told; i += 1) {
        const id = flow.id(`${name}-${i}`);
        await producer.submit([1, 2], { id, limit: 2 });
        await until(() => worker.running === 2);
        told = (await added()) > 2 + SHARDS;
        door.open();
        await until(async () => (await flow.request(id).state())?.status === 'complete');
        door = gate();
      }
      expect(await added()).toBe(3 + SHARDS);
      await producer.close();
    },
  );

  it('has from 1 to 64 of them, and a name that leaves room for their number', () => {
    const redis = 'redis://localhost:1';
    for (const shards of [0, 65, 1.5, '4']) {
      for (const make of [Piecework, Producer, Notifier, Admin])
        expect(() => new make({ redis, shards: shards as number })).toThrow(InvalidOptionError);
      const worker = { redis, shards: shards as number, handler: () => {} };
      expect(() => new Worker(worker)).toThrow(/shards/);
    }
    const queue = 'q'.repeat(127);
    expect(() => new Producer({ redis, queue, shards: 2 })).toThrow(/at most 126 characters/);
    expect(() => new Worker({ redis, queue, shards: 2, handler: () => {} })).toThrow(/queue/);
  });
});

type Lister = { client(what: 'LIST'): Promise<unknown> };

describe('the shard of an id', () => {
  it('is the same in any language, and as many ids are of each', () => {
    // printf '%s' order-1 | sha256sum | cut -c1-8
    const known = { a: 0xca978112, 'order-1': 0x0bafe221, 'order-2': 0x3d5e3106, é: 0x4a99557e };
    for (const [id, bytes] of Object.entries(known)) {
      for (const shards of [2, 3, 7, 64]) expect(shardOf(id, shards)).toBe(bytes % shards);
      expect(shardOf(id, 1)).toBe(0);
    }
    for (const shards of [2, 3, 4, 64]) {
      const counts = new Map<number, number>();
      for (const n of numbers(1_000 * shards)) {
        const shard = shardOf(`order-${n}`, shards);
        counts.set(shard, (counts.get(shard) ?? 0) + 1);
      }
      expect(counts.size).toBe(shards);
      for (const count of counts.values()) {
        expect(count).toBeGreaterThan(850);
        expect(count).toBeLessThan(1_150);
      }
    }
  });
});

describe('whose turn it is among shards', () => {
  /** Which of them may ask now. */
  const turns = (equals: ReturnType<SlotPool['joinAll']>) => {
    const asks: number[] = [];
    for (const [i, one] of equals.entries()) void one.whenFree().then(() => asks.push(i));
    return new Promise<number[]>((resolve) => setImmediate(() => resolve(asks)));
  };

  it('goes round, and no shard is asked twice before the others are', async () => {
    const pool = new SlotPool(1);
    const equals = pool.joinAll({ sessions: () => [], running: () => 0 }, 3);
    for (const one of equals) one.rests = false;
    for (const expected of [0, 1, 2, 0, 1, 2]) {
      expect(await turns(equals)).toEqual([expected]);
      equals[expected]?.found();
    }
  });

  it('passes over one that has nothing, or whose server does not answer', async () => {
    const pool = new SlotPool(1);
    const [a, b, c] = pool.joinAll({ sessions: () => [], running: () => 0 }, 3) as [
      never,
      never,
      never,
    ];
    const equals: ReturnType<SlotPool['joinAll']> = [a, b, c];
    for (const one of equals) one.rests = false;
    equals[0]?.loseTurn();
    expect(await turns(equals)).toEqual(expect.arrayContaining([0, 1]));
    expect(await turns(equals)).not.toContain(2);
    void equals[1]?.restWithAll();
    expect(await turns(equals)).toContain(2);
  });
});

/**
 * The bounds are of servers that answer within a second; one that does not loses its turn. Where there is one
 * server for all shards, it may stand still, and they wait for it together.
 */
function whereNoTurnIsLost(): void {
  const slots = Object.getPrototypeOf(
    new SlotPool(1).join({ sessions: () => [], running: () => 0 }),
  ) as ReturnType<SlotPool['join']>;
  beforeEach(() => void vi.spyOn(slots, 'loseTurn').mockImplementation(() => {}));
  afterEach(() => void vi.restoreAllMocks());
}

/**
 * How often, at most, others were begun that are less urgent than the most urgent one that a shard has,
 * until that one was; and pairs of one shard that were begun in the wrong order. All are there before the first.
 */
function judgeStarts(order: readonly { shard: number; priority: number }[], shards: number) {
  let overtaken = 0;
  let wrong = 0;
  const left = [...order];
  const passed = numbers(shards).map(() => 0);
  for (const start of order) {
    left.shift();
    passed[start.shard] = 0;
    for (const shard of numbers(shards)) {
      const waits = left.filter((one) => one.shard === shard).map(({ priority }) => priority);
      const urgent = Math.min(...waits);
      if (urgent >= start.priority) continue;
      if (shard === start.shard) wrong += 1;
      passed[shard] = (passed[shard] as number) + 1;
      overtaken = Math.max(overtaken, passed[shard] as number);
    }
  }
  return { overtaken, wrong };
}

describe('the order of priorities across shards', () => {
  whereNoTurnIsLost();

  test('is strict within one, and at most K − 1 are taken before a more urgent one of another', async ({
    flow,
  }) => {
    let runs = 0;
    const property = fc.asyncProperty(
      fc.integer({ min: 2, max: 5 }),
      fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 10, maxLength: 24 }),
      async (shards, priorities) => {
        runs += 1;
        const queue = `${flow.queue}-${runs}`;
        const pw = new Piecework({ redis: flow.redis, queue, shards });
        const priorityOf = new Map<string, number>();
        for (const [n, priority] of priorities.entries()) {
          const id = flow.id(`${runs}-${n}`);
          priorityOf.set(id, priority);
          await pw.submit([n], { id, priority });
        }
        const order: { shard: number; priority: number }[] = [];
        const handler = (_: number, { requestId }: HandlerContext) => {
          const priority = priorityOf.get(requestId) as number;
          order.push({ shard: shardOf(requestId, shards), priority });
        };
        const worker = flow.worker({ queue, shards, concurrency: 1, quantumMs: 0, handler });
        await worker.start();
        for (const id of priorityOf.keys()) await pw.request(id).completion();
        await worker.close();
        for (const id of priorityOf.keys()) await pw.admin.drop(id);
        await pw.close();
        expect(order).toHaveLength(priorities.length);
        const { overtaken, wrong } = judgeStarts(order, shards);
        expect(wrong).toBe(0);
        expect(overtaken).toBeLessThanOrEqual(shards - 1);
      },
    );
    await fc.assert(property, { numRuns: 6, endOnFailure: true });
  });

  it('is judged by what was begun', () => {
    const [a, b] = [
      { shard: 0, priority: 9 },
      { shard: 1, priority: 1 },
    ];
    expect(judgeStarts([a, b], 2)).toEqual({ overtaken: 1, wrong: 0 });
    expect(judgeStarts([a, a, a, b], 2)).toEqual({ overtaken: 3, wrong: 0 });
    expect(judgeStarts([b, a, a], 2)).toEqual({ overtaken: 0, wrong: 0 });
    expect(judgeStarts([a, { shard: 0, priority: 2 }], 2)).toEqual({ overtaken: 1, wrong: 1 });
  });

  test('reaches one that holds the only slot, at the end of its time slice', async ({ flow }) => {
    const pw = sharded(flow);
    const begun: number[] = [];
    let ended = false;
    const handler = async (n: number) => {
      begun.push(n);
      // It comes while the other one runs, which then has a thousand left.
      if (n === 0) await pw.submit([-1], { id: idIn(flow, 3, 'urgent'), priority: 1 });
      if (n === -1) ended = true;
    };
    const long = await pw.submit(numbers(1_000), { id: idIn(flow, 0, 'long'), priority: 60 });
    await flow.worker({ shards: SHARDS, concurrency: 1, quantumMs: 0, handler }).start();
    await until(() => ended);
    expect(begun.indexOf(-1)).toBeLessThanOrEqual(SHARDS);
    await long.cancel();
    await long.completion();
  });
});

describe('the order of pops across shards', { tags: 'own-server' }, () => {
  whereNoTurnIsLost();

  /** Bursts of requests for one worker; `busy`: work is in every list throughout, so no pop waits. */
  async function bursts(concurrency: number, busy: boolean) {
    const folder = await mkdtemp(join(tmpdir(), 'piecework-turns-'));
    const args = ['--appendonly', 'yes', '--appendfsync', 'no'];
    const server = await startRedis({
      dir: folder,
      args: [...args, '--auto-aof-rewrite-percentage', '0'],
    });
    onTestFinished(async () => {
      await server.close();
      await rm(folder, { recursive: true, force: true });
    });
    const at = { redis: server.url, queue: 'turns', shards: SHARDS };
    const pw = new Piecework(at);
    const log = new Log();
    const worker = new Worker({
      ...at,
      concurrency,
      quantumMs: 2,
      logger: log as never,
      handler: () => new Promise((resolve) => setImmediate(resolve)),
    });
    const backlog: Promise<unknown>[] = [];
    if (busy) {
      for (const shard of everyShard) {
        const ids = numbers(1_000).map((n) => `least-${n}`);
        for (const id of ids.filter((one) => shardOf(one, SHARDS) === shard).slice(0, 20)) {
          backlog.push(pw.submit(numbers(1_000), { id, limit: 1, priority: 99 }));
        }
      }
    }
    await Promise.all(backlog);
    await worker.start();
    for (const burst of numbers(8)) {
      const requests = await Promise.all(
        numbers(30).map((n) =>
          pw.submit(numbers(1 + (n % 4)), { limit: 2, priority: (n * 7 + burst) % 10 }),
        ),
      );
      if (burst % 2) await Promise.all(requests.map((request) => request.completion()));
    }
    await until(async () => (await pw.admin.counts()).open === backlog.length);
    await worker.close();
    await pw.close();
    const names = everyShard.map((n) => `turns.${n}`);
    const judged = await judgeTurns(join(folder, 'appendonlydir'), names);
    expect(judged.breaches).toEqual([]);
    expect(judged.pops.length).toBeGreaterThanOrEqual(240);
    expect(judged.overtaken).toBeGreaterThan(0);
    expect(log.lines.filter(({ level }) => level !== 'info')).toEqual([]);
    return judged.overtaken;
  }

  for (const concurrency of playsAll ? [4, 1, 10] : [4]) {
    it(`lets each other shard pass once: ${concurrency} slots`, async () => {
      expect(await bursts(concurrency, true)).toBeLessThanOrEqual(SHARDS - 1);
    });

    it(`lets each pass once more at the end of a wait: ${concurrency} slots`, async () => {
      expect(await bursts(concurrency, false)).toBeLessThanOrEqual(2 * (SHARDS - 1));
    });
  }
});
