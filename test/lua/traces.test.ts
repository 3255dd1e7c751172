import { expect } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import {
  append,
  back,
  create,
  failure,
  given,
  Hand,
  items,
  LEASE_MS,
  PRODUCER,
  popAll,
  success,
  tickOnce,
} from '../support/given.js';
import { inspect, inspectQueue } from '../support/peek.js';
import { playTraces, type Trace } from '../support/trace.js';

/*
 * Short histories that broke an earlier protocol, each with the cure that the scripts have for it
 * (trace.ts says how they are played). Their names stand in docs/guarantees.md. D and R: found by
 * thinking, and by random runs, before there was any code. P: found by attacking these very scripts.
 */

useTestClock();

const traces: Record<string, Trace> = {
  // Read empty; append (mints nothing, as my permit counts); leave: 1 ready, no token.
  D1: {
    says: 'what is appended while the last worker is about to leave gets a token when it leaves',
    async play() {
      const scene = await given.filled({ items: 1, limit: 1 });
      const worker = new Hand(scene);
      const [only] = await worker.hold(1);
      await worker.settle([success(only!)]);
      expect(await worker.read(1)).toEqual([]);
      const { mint } = (await scene.request.append(scene.generation, PRODUCER, 1, items(1))) as {
        mint: number;
      };
      expect(mint).toBe(0);
      const left = await worker.settle([], { keep: 0 });
      expect(left.mint).toBe(1);
      await inspect(scene);
    },
    without: [{ script: 'settle', from: 'if freed > 0 or gaveBack then', to: 'if gaveBack then' }],
  },

  // fail(delay) -> leave -> tend: the entry belongs to a consumer without permit -> due 0.
  D2: {
    says: 'a delayed retry keeps its delay when the worker that failed it leaves',
    async play() {
      const scene = await given.filled({ items: 1, attempts: 2 });
      const worker = new Hand(scene);
      const [only] = await worker.hold(1);
      await worker.settle([failure(only!, 100_000)], { keep: 0 });
      await scene.request.tend(scene.generation, '');
      const { due, now, counts } = await inspect(scene);
      expect(counts).toMatchObject({ delayed: 1, ready: 0 });
      expect(due[0]).toBeGreaterThan(now + 90_000);
    },
    without: [
      {
        script: 'settle',
        from: "redis.call('XCLAIM', keys.work, 'workers', '~', 0, id, 'RETRYCOUNT', deliveries, 'JUSTID')",
        to: '',
      },
    ],
  },

  // Reclaim, v takes, the zombie's failure parks v's running entry; another runs it beside v.
  D3: {
    says: 'the failure of a worker that lost its lease does not touch what another runs by then',
    async play() {
      const scene = await given.sealed({ items: 1, attempts: 2 });
      const zombie = new Hand(scene, 'zombie');
      const heir = new Hand(scene, 'heir');
      const [only] = await zombie.hold(1);
      moveClock(LEASE_MS + 1);
      await scene.request.tend(scene.generation, '');
      await heir.enter(1);
      await heir.take(1);
      await zombie.settle([failure(only!)]);
      const { pending, tries } = await inspect(scene);
      expect(pending).toMatchObject([{ index: 0, owner: 'heir' }]);
      expect(tries).toEqual({});
    },
    without: [
      {
        script: 'settle',
        from: "return redis.call('XPENDING', work, 'workers', id, id, 1, worker)[1]",
        to: "return redis.call('XPENDING', work, 'workers', id, id, 1)[1]",
      },
    ],
  },

  // due keeps a settled id: ready too high, in flight -1.
  D4: {
    says: 'the success of a worker that lost its lease counts, and takes the entry out of the pool',
    async play() {
      const scene = await given.filled({ items: 2 });
      const zombie = new Hand(scene, 'zombie');
      const [first] = await zombie.hold(1);
      moveClock(LEASE_MS + 1);
      await scene.request.tend(scene.generation, '');
      expect((await inspect(scene)).due).toEqual({ 0: 0 });
      await zombie.settle([success(first!)]);
      const { due, counts } = await inspect(scene);
      expect(due).toEqual({});
      expect(counts).toMatchObject({ succeeded: 1, ready: 1, inFlight: 0 });
    },
    without: [
      { script: 'settle', from: "redis.call('ZREM', due, unpack(keys.unparked))", to: '0' },
    ],
  },

  // settle sent twice: 2 succeeded of 1 entry.
  D5: {
    says: 'a success that is reported twice counts once',
    async play() {
      const scene = await given.filled({ items: 2 });
      const worker = new Hand(scene);
      const [first] = await worker.hold(1);
      await worker.settle([success(first!)], { since: '' });
      await worker.settle([success(first!)], { since: '' });
      const { counts, results } = await inspect(scene);
      expect(counts.succeeded).toBe(1);
      expect(results).toHaveLength(1);
    },
    without: [
      {
        script: 'settle',
        from: "if redis.call('XACK', keys.work, 'workers', id) == 0 then",
        to: "if redis.call('XACK', keys.work, 'workers', id) == -1 then",
      },
    ],
  },

  // Intent, tend 'missing' -> removed, late create + append ok, crash: nothing ever fires.
  D6: {
    says: 'a create that comes after its intent was given up is refused',
    async play() {
      const scene = await given.opened();
      moveClock(21_000);
      await tickOnce(scene);
      expect((await inspectQueue(scene)).open).toEqual({});
      expect(await create(scene)).toMatchObject({ verdict: 'void' });
    },
    without: [
      {
        script: 'tend',
        from: "redis.call('HSET', request, 'generation', generation, 'status', v[2] or 'void')",
        to: '',
      },
    ],
  },

  // The late finish of life 1 removes life 2: nothing ever fires.
  D7: {
    says: 'a late finish of one life leaves the next life of the id alone',
    async play() {
      const first = await given.sealed({ items: 1 });
      await first.request.drop();
      await first.queue.finish(first.id, first.generation, 'dropped');
      const second = await given.filled({ id: first.id, queue: first.queue.keys.queue });
      expect(second.generation).toBeGreaterThan(first.generation);
      await first.queue.finish(first.id, first.generation, 'dropped');
      expect((await inspectQueue(second)).open).toEqual({ [second.id]: second.generation });
    },
    without: [
      {
        script: 'finish',
        from: "local verdict = known == generation and 'finished' or 'closed'",
        to: "local verdict = known and 'finished' or 'closed'",
      },
    ],
  },

  // Enter re-sent without op: 2 permits of one token, out 1 for 2 real ones.
  D8: {
    says: 'an enter that is sent twice grants once and counts its token once',
    async play() {
      const scene = await given.filled({ items: 4, limit: 4 });
      const worker = new Hand(scene);
      await worker.enter(1);
      const before = await inspect(scene);
      expect(await worker.reenter(1)).toMatchObject({ permits: 1, mint: 0 });
      const after = await inspect(scene);
      expect(after.permits).toEqual({ worker: 1 });
      expect(after.out).toBe(before.out);
    },
    without: [
      {
        script: 'enter',
        from: 'if op > known then',
        to: 'if true then',
      },
    ],
  },

  // Late enter after leave: a permit held by nobody, limit 1 stands still for a lease.
  'D8, late': {
    says: 'an enter that arrives after the worker left grants nothing',
    async play() {
      const scene = await given.filled({ items: 2, limit: 1 });
      const worker = new Hand(scene);
      const [first] = await worker.hold(1);
      await worker.settle([success(first!)], { keep: 0 });
      await scene.request.tend(scene.generation, '');
      await worker.reenter(1, [1], 1);
      expect((await inspect(scene)).permits).toEqual({});
    },
    without: [
      {
        script: 'enter',
        from: 'if op > known then',
        to: 'if true then',
      },
    ],
  },

  // XGROUP DELCONSUMER deletes the entries of the consumer with it: total 1 = 0.
  D9: {
    says: 'nothing is lost when the consumer of a dead worker is removed',
    async play() {
      const scene = await given.filled({ items: 1 });
      await new Hand(scene, 'dead').hold(1);
      moveClock(LEASE_MS + 1);
      await scene.request.tend(scene.generation, '');
      expect((await inspect(scene)).counts.ready).toBe(1);
      await scene.request.tend(scene.generation, '');
      const { counts, consumers } = await inspect(scene);
      expect(counts.ready).toBe(1);
      expect(consumers).toEqual(['~']);
    },
    without: [
      { script: 'tend', from: 'if pending == 0 then', to: 'if pending >= 0 then' },
      {
        script: 'tend',
        from: "redis.call('XGROUP', 'DELCONSUMER', work, 'workers', name)",
        to: '',
      },
    ],
  },

  // Push before leave: another pops, sees granted == limit and drops the token; the leave then counts
  // one that is gone: list empty, granted 0, out 1, ready 4. So: leave first, push second.
  D10: {
    says: 'the token of a worker that leaves is counted before it can be popped',
    async play() {
      const scene = await given.filled({ items: 5, limit: 1 });
      const { id, generation, queue } = scene;
      await popAll(scene);
      const leaver = new Hand(scene, 'leaver');
      const [first] = await leaver.hold(1);
      const left = await leaver.settle([success(first!)], { keep: 0 });
      await queue.push({ id, generation, ...left });
      expect((await inspect(scene)).out).toBe(1);
      expect(await popAll(scene)).toHaveLength(1);
      const heir = await new Hand(scene, 'heir').enter(1, [left.epoch]);
      expect(heir.permits).toBe(1);
      expect((await inspect(scene)).out).toBe(0);
    },
    without: [
      { script: 'settle', from: 'if freed > 0 or gaveBack then', to: 'if gaveBack then' },
      { script: 'settle', from: "redis.call('HSET', request, 'out', state.out)", to: '' },
    ],
  },

  // A zombie's read that comes after its lease was withdrawn stays for ever.
  D11: {
    says: 'what a worker reads after it lost its lease is reclaimed',
    async play() {
      const scene = await given.filled({ items: 2 });
      const zombie = new Hand(scene, 'zombie');
      await zombie.enter(1);
      moveClock(LEASE_MS + 1);
      await scene.request.tend(scene.generation, '');
      await zombie.read(1);
      expect((await inspect(scene)).counts.inFlight).toBe(1);
      await scene.request.tend(scene.generation, '');
      expect((await inspect(scene)).counts).toMatchObject({ inFlight: 0, ready: 2 });
    },
    without: [
      {
        script: 'tend',
        from: "if name ~= '~' and not holding[name] then",
        to: 'if false then',
      },
    ],
  },

  // Append with HINCRBY of what was sent: I1 broken when it is sent again.
  R12: {
    says: 'a chunk that is sent twice adds nothing twice',
    async play() {
      const scene = await given.filled({ items: 3 });
      await append(scene, 3);
      await append(scene, 3, 1);
      const { counts, work } = await inspect(scene);
      expect(counts.total).toBe(4);
      expect(work).toEqual([0, 1, 2, 3]);
    },
    without: [
      {
        script: 'append',
        from: 'local fresh = math.max(0, first + count - sent)',
        to: 'local fresh = count',
      },
    ],
  },

  // A token that was popped by a worker that died, or never pushed: stall.
  R13: {
    says: 'a token that was lost is minted again',
    async play() {
      const scene = await given.sealed({ items: 2, limit: 1 });
      await popAll(scene);
      let tokens: string[] = [];
      for (let passed = 0; passed < 120_000 && tokens.length === 0; passed += 5_000) {
        moveClock(5_000);
        await tickOnce(scene);
        await inspectQueue(scene);
        tokens = await popAll(scene);
      }
      expect(tokens).toHaveLength(1);
      const heir = await new Hand(scene).enter(1, [tokens[0]!.split('~')[2]!]);
      expect(heir.permits).toBe(1);
    },
    without: [
      {
        script: 'tend',
        from: 'if state.outBefore == 0 and state.out > 0 then',
        to: 'if false then',
      },
      {
        script: 'tend',
        from: 'if state.outBefore > 0 and tonumber(passed) == state.epoch - 1 then',
        to: 'if false then',
      },
      { script: 'tick', from: "redis.call('ZADD', agenda, 'LT', at + graceMs, id)", to: '' },
    ],
  },

  // Tick A (tended early, frozen) writes after tick B and erases B's wait entry.
  R14: {
    says: 'a tick that stood still does not undo what a later one wrote',
    async play() {
      const scene = await given.created({ limit: 1, producerLeaseMs: 3_600_000 });
      const { id, generation, queue, request } = scene;
      moveClock(21_000);
      const [frozen] = (await queue.tick('', '')).claims;
      const early = await request.tend(frozen!.generation, frozen!.passed);
      await append(scene, 2);
      moveClock(8_001);
      await tickOnce(scene);
      const waiting = await inspectQueue(scene);
      expect(waiting.wait).toMatchObject({ [id]: { priority: 50, mark: 1 } });
      expect(early).toMatchObject({ verdict: 'ok', before: '' });
      expect(await queue.writeBack(frozen!, early as never)).toBe('moved');
      expect((await inspectQueue(scene)).wait).toEqual(waiting.wait);
      expect((await inspectQueue(scene)).open).toEqual({ [id]: generation });
    },
    without: [
      {
        script: 'write-back',
        from: "if tonumber(redis.call('ZSCORE', agenda, id)) ~= claim then",
        to: 'if false then',
      },
    ],
  },

  // Two settles with keep 3, then keep 2; another takes the freed permit; the first arrives again.
  P1: {
    says: 'a settle that arrives again late does not bring permits back',
    async play() {
      const scene = await given.filled({ items: 6, limit: 3 });
      const worker = new Hand(scene);
      const [first, second] = await worker.hold(3);
      await worker.settle([success(first!)], { keep: 3, running: 2 });
      const late = worker.op;
      await worker.settle([success(second!)], { keep: 1, running: 1 });
      expect((await new Hand(scene, 'other').enter(2)).permits).toBe(2);
      await worker.settle([success(first!)], { keep: 3, running: 3, op: late });
      expect((await inspect(scene)).permits).toEqual({ worker: 1, other: 2 });
    },
    without: [
      [
        {
          script: 'settle',
          from: 'local allow = math.min(keep, permits, ',
          to: 'local allow = math.min(keep, ',
        },
        { script: 'settle', from: 'if permits > 0 and not late then', to: 'if permits > 0 then' },
      ],
    ],
  },

  // Leave, enter again, read; the leave arrives again: the permit is free while the handler runs.
  P2: {
    says: 'a leave that arrives after the worker entered again takes no permit away',
    async play() {
      const scene = await given.filled({ items: 3, limit: 1 });
      const worker = new Hand(scene);
      const [first] = await worker.hold(1);
      await worker.settle([success(first!)], { keep: 0 });
      const late = worker.op;
      await worker.hold(1);
      await worker.settle([success(first!)], { keep: 0, op: late });
      expect((await inspect(scene)).permits).toEqual({ worker: 1 });
      expect((await new Hand(scene, 'other').enter(1)).permits).toBe(0);
    },
    without: [
      { script: 'settle', from: 'if permits > 0 and not late then', to: 'if permits > 0 then' },
    ],
  },

  // Fail, take again, run; the failure arrives again: parked while it runs, one attempt burnt.
  P3: {
    says: 'a failure that arrives after its worker took the retry does not count for the retry',
    async play() {
      const scene = await given.filled({ items: 1, attempts: 3 });
      const worker = new Hand(scene);
      const [only] = await worker.hold(1);
      await worker.settle([failure(only!)]);
      const late = worker.op;
      expect(await worker.take(1)).toMatchObject([{ index: 0, tries: 1 }]);
      await worker.settle([failure(only!)], { op: late });
      const { pending, tries } = await inspect(scene);
      expect(tries).toEqual({ 0: 1 });
      expect(pending).toMatchObject([{ index: 0, owner: 'worker' }]);
    },
    without: [{ script: 'settle', from: 'if not late then', to: 'if true then' }],
  },

  // Cancel; the worker gives its last one back: parked, and nobody looks for a minute.
  P4: {
    says: 'what is given back to a request that is being cancelled is cancelled',
    async play() {
      const scene = await given.sealed({ items: 2 });
      const worker = new Hand(scene);
      const [first] = await worker.hold(1);
      expect(await scene.request.cancel(scene.generation)).toMatchObject({ verdict: 'cancelling' });
      expect(await worker.trySettle([back(first!)], { keep: 0 })).toEqual({
        verdict: 'complete',
        outcome: 'cancelled',
      });
      expect((await inspect(scene)).counts.cancelled).toBe(2);
    },
    without: [
      {
        script: 'settle',
        from: 'return cancelOwned(keys, state, id)\nend\npark(',
        to: 'end\npark(',
      },
    ],
  },

  // Cancel; the worker dies: the tend cancelled what was parked before it reclaimed more.
  P5: {
    says: 'what a dead worker held of a request that is being cancelled is cancelled at once',
    async play() {
      const scene = await given.sealed({ items: 2 });
      await new Hand(scene).hold(1);
      await scene.request.cancel(scene.generation);
      moveClock(LEASE_MS + 1);
      expect(await scene.request.tend(scene.generation, '')).toEqual({
        verdict: 'complete',
        outcome: 'cancelled',
      });
    },
    without: [
      [
        {
          script: 'tend',
          from: 'local page = readWorkers(request, work, v[14])\nlocal nextLease, ended, holding, causes = withdrawExpired(request, state, at, grace, page.fields)\nlocal more = reclaim(keys, state, ended, holding, causes, page.names)\nnextLease = nextPage(request, page, v[14], more or nextLease == at + 1, nextLease, at)\n',
          to: '',
        },
        {
          script: 'tend',
          from: 'local spent =',
          to: 'local page = readWorkers(request, work, v[14])\nlocal nextLease, ended, holding, causes = withdrawExpired(request, state, at, grace, page.fields)\nlocal more = reclaim(keys, state, ended, holding, causes, page.names)\nnextLease = nextPage(request, page, v[14], more or nextLease == at + 1, nextLease, at)\nlocal spent =',
        },
      ],
    ],
  },

  // A retained request; intent of the next life; given up (voided); retention ends; late create: an
  // orphan, as in D6, because what remembered the void was gone.
  P6: {
    says: 'that an intent was given up is remembered beyond the retention of the life before',
    async play() {
      const first = await given.sealed({ items: 0, retentionMs: 1_000 });
      await first.queue.finish(first.id, first.generation, 'succeeded');
      const second = await given.opened({ id: first.id, queue: first.queue.keys.queue });
      moveClock(21_000);
      await tickOnce(second);
      expect((await inspectQueue(second)).open).toEqual({});
      const { client } = first.connection;
      expect(await client.pttl(first.request.keys.request)).toBeGreaterThan(120_000);
      expect(await create(second)).toMatchObject({ verdict: 'exists', status: 'complete' });
    },
    without: [
      { script: 'tend', from: "redis.call('PEXPIRE', request, tombstoneMs, 'GT')", to: '' },
    ],
  },

  // A and B submit an id that is retained, under one new generation. B is refused; the retained life
  // is dropped; A creates; B's finish takes A's life off the queue side: nothing ever fires.
  P7: {
    says: 'a generation that one submitter was refused cannot be created by another',
    async play() {
      const first = await given.sealed({ items: 0 });
      await first.queue.finish(first.id, first.generation, 'succeeded');
      const next = await given.opened({ id: first.id, queue: first.queue.keys.queue });
      expect(await create(next, { owner: 'B' })).toMatchObject({ verdict: 'exists' });
      await next.request.drop();
      expect(await create(next, { owner: 'A' })).toMatchObject({ verdict: 'void' });
    },
    without: [
      {
        script: 'create',
        from: "redis.call('HSET', request, 'voided', math.max(asked, tonumber(v[5]) or 0))",
        to: '',
      },
    ],
  },

  // A tend mints, the token is pushed, popped and lost: counted in this epoch, so no mark was set,
  // and the next look was a minute away.
  P8: {
    says: 'a token that a tend minted and somebody lost is missed within the audit period',
    async play() {
      const scene = await given.sealed({ items: 1, limit: 1, attempts: 2 });
      await popAll(scene);
      const worker = new Hand(scene);
      const [only] = await worker.hold(1);
      await worker.settle([failure(only!, 100_000)], { keep: 0 });
      moveClock(22_000);
      await tickOnce(scene);
      moveClock(80_000);
      for (let look = 0; look < 10; look += 1) {
        await tickOnce(scene);
        if ((await popAll(scene)).length > 0) break;
        moveClock(1_000);
      }
      let passed = 0;
      for (let tokens = 0; tokens === 0 && passed < 120_000; passed += 1_000) {
        moveClock(1_000);
        await tickOnce(scene);
        tokens = (await popAll(scene)).length;
      }
      // The audit, a grace for the mark to pass, and a second for each of three ticks.
      expect(passed).toBeLessThanOrEqual(15_000 + 5_000 + 3_000);
    },
    without: [
      { script: 'tend', from: "if state.out > 0 and before == '' then", to: 'if false then' },
    ],
  },

  // A worker that does not serve the task pops a token: everybody else had to stop.
  P9: {
    says: 'those who serve a task go on when one who does not meets the request',
    async play() {
      const scene = await given.filled({ items: 5, limit: 2, task: 'census', attempts: 2 });
      const server = new Hand(scene, 'server');
      await server.tryEnter(1, [1], ' census ');
      const [first] = await server.read(1);
      const other = new Hand(scene, 'other');
      expect(await other.tryEnter(1, [1], ' tax ')).toMatchObject({ verdict: 'unserved' });
      const settled = await server.settle([back(first!)], { keep: 1 });
      // No token: it would be met by the same one again.
      expect(settled).toMatchObject({ permits: 1, mint: 0 });
      expect(await server.take(1)).toHaveLength(1);
      expect(await server.tryEnter(1, [], ' census ')).toMatchObject({ permits: 2, mint: 0 });
    },
    without: [
      {
        script: 'settle',
        from: "state.halted = v[13] == '1'",
        to: "state.halted = v[13] == '1' or v[14] == '1'",
      },
      { script: 'settle', from: 'if state.parked then\nreturn 0\nend', to: '' },
    ],
  },

  // A killer runs beside a suspect that waits in the same process for its turn: it took its share of
  // three crashes by standing by, and failed though it never did anything.
  P10: {
    says: 'only what ran alone can fail by a crash',
    async play() {
      const scene = await given.sealed({ items: 2, limit: 2, maxCrashes: 2 });
      await new Hand(scene, 'first').hold(2);
      moveClock(LEASE_MS + 1);
      await scene.request.tend(scene.generation, '');
      const second = new Hand(scene, 'second');
      await second.enter(2);
      const [killer] = await second.take(2);
      await scene.request.runAlone(scene.generation, 'second', 1, [killer!.entry]);
      moveClock(LEASE_MS + 1);
      await scene.request.tend(scene.generation, '');
      const { counts, failed, crashes } = await inspect(scene);
      expect(counts).toMatchObject({ failed: 1, ready: 1 });
      expect(Object.keys(failed).sort()).toEqual(['0', '0:payload', '0:runs']);
      expect(crashes).toEqual({ 1: 2 });
    },
    without: [
      { script: 'tend', from: '(crashes > 1 and v[3] ~= worker)', to: 'false' },
      { script: 'tend', from: 'ended[worker] = true\nfor _, kind', to: 'for _, kind' },
      {
        script: 'run-alone',
        from: "redis.call('HSET', tries, index .. ':alone', worker)",
        to: '',
      },
    ],
  },

  // It ran alone, was given back, and waits again with the same worker when that one dies.
  'P10, again': {
    says: 'what ran alone once is not held responsible for what happens while it waits',
    async play() {
      const scene = await given.sealed({ items: 1, limit: 1, maxCrashes: 2 });
      await new Hand(scene, 'first').hold(1);
      moveClock(LEASE_MS + 1);
      await scene.request.tend(scene.generation, '');
      const second = new Hand(scene, 'second');
      await second.enter(1);
      const [suspect] = await second.take(1);
      await scene.request.runAlone(scene.generation, 'second', 1, [suspect!.entry]);
      await second.settle([back(suspect!)]);
      await second.take(1);
      moveClock(LEASE_MS + 1);
      expect(await scene.request.tend(scene.generation, '')).toMatchObject({ verdict: 'ok' });
      expect((await inspect(scene)).counts).toMatchObject({ failed: 0, ready: 1 });
    },
    without: [
      {
        script: 'take',
        from: "redis.call('HDEL', tries, index .. ':alone')",
        to: '',
      },
    ],
  },

  // 150 held by a worker that died: one look takes 100 back, and at the next it has no lease that ends.
  P11: {
    says: 'a crash counts for everything that the worker held, also what the next look takes back',
    async play() {
      const scene = await given.filled({ items: 150, limit: 150 });
      await new Hand(scene, 'dead').hold(150);
      moveClock(LEASE_MS + 1);
      await scene.request.tend(scene.generation, '');
      await scene.request.tend(scene.generation, '');
      const { crashes, fields } = await inspect(scene);
      expect(Object.keys(crashes)).toHaveLength(150);
      expect(fields).not.toHaveProperty('crashed:dead');
    },
    without: [
      { script: 'tend', from: "left[#left + 1] = 'crashed:' .. name\nleft[#left + 1] = 1", to: '' },
    ],
  },

  // A worker closes; a read of it that was under way arrives afterwards, as of a zombie.
  P12: {
    says: 'what a worker that left still reads is not a crash',
    async play() {
      const scene = await given.filled({ items: 2 });
      const worker = new Hand(scene);
      await worker.hold(1);
      await worker.settle([back({ entry: `${scene.generation}-0` })], { keep: 0 });
      await worker.read(1);
      moveClock(LEASE_MS + 1);
      await scene.request.tend(scene.generation, '');
      const { crashes, counts } = await inspect(scene);
      expect(crashes).toEqual({});
      expect(counts).toMatchObject({ ready: 2 });
    },
    without: [
      {
        script: 'tend',
        from: 'if not (ended[name] and settledByCrash(',
        to: 'if not (settledByCrash(',
      },
    ],
  },

  // Redis stands still for longer than a lease: the first tick withdrew everything from everybody.
  P13: {
    says: 'after Redis was away, a worker has its whole lease to renew',
    async play() {
      const scene = await given.sealed({ items: 1, limit: 1 });
      const worker = new Hand(scene);
      await worker.hold(1);
      await tickOnce(scene);
      moveClock(2 * LEASE_MS);
      await tickOnce(scene);
      expect((await inspect(scene)).permits).toEqual({ worker: 1 });
      for (let look = 0; look < 3; look += 1) {
        moveClock(LEASE_MS / 3 - 1_000);
        await tickOnce(scene);
      }
      expect(await worker.renew()).toEqual({ verdict: 'ok', permits: 1 });
      expect((await inspect(scene)).counts).toMatchObject({ inFlight: 1, ready: 0 });
    },
    without: [
      {
        script: 'tend',
        from: 'math.max(written, grace.from + (term or 0))',
        to: 'written',
      },
      { script: 'tick', from: 'resumedAt = at\nend', to: 'end' },
    ],
  },

  // Each return of Redis was a new grace: a dead worker kept its permits as long as that went on.
  P14: {
    says: 'a Redis that comes and goes does not leave a dead worker its permits for ever',
    async play() {
      const scene = await given.sealed({ items: 1, limit: 1 });
      await new Hand(scene, 'dead').hold(1);
      await tickOnce(scene);
      for (let away = 0; away < 3; away += 1) {
        moveClock(2 * LEASE_MS);
        await tickOnce(scene);
      }
      expect((await inspect(scene)).permits).toEqual({});
    },
    without: [
      { script: 'tick', from: 'if away and tickedAt ~= resumedAt then', to: 'if away then' },
    ],
  },

  // A retained life is dropped while the intent of the next one is open; the intent comes to nothing,
  // which forgets no end: the queue listed the dropped life for 7 days.
  P15: {
    says: 'a life that is dropped is forgotten though the next one is open and comes to nothing',
    async play() {
      const first = await given.sealed({ items: 0 });
      await first.queue.finish(first.id, first.generation, 'succeeded');
      const next = await given.opened({ id: first.id, queue: first.queue.keys.queue });
      await first.request.drop(first.generation);
      await first.queue.finish(first.id, first.generation, 'dropped');
      expect((await inspectQueue(next)).open).toEqual({ [next.id]: next.generation });
      moveClock(21_000);
      await tickOnce(next);
      expect(await inspectQueue(next)).toMatchObject({ open: {}, history: {} });
      expect((await inspectQueue(next)).history).toEqual({});
    },
    without: [{ script: 'finish', from: ' or not known or later)', to: ' or not known)' }],
  },

  // The same, and whoever drops dies before `finish`: asked again, it said that there is nothing to drop.
  'P15, again': {
    says: 'a drop that was cut in two can be taken up when the next intent came to nothing',
    async play() {
      const first = await given.sealed({ items: 0 });
      const { id, queue, request } = first;
      await queue.finish(id, first.generation, 'succeeded');
      const next = await given.opened({ id, queue: queue.keys.queue });
      await request.drop(first.generation);
      moveClock(21_000);
      await tickOnce(next);
      expect(await create(next)).toMatchObject({ verdict: 'void' });
      const dropped = await request.drop(first.generation);
      expect(dropped).toEqual({
        verdict: 'dropped',
        generation: next.generation,
        queue: queue.keys.queue,
      });
      await queue.finish(id, next.generation, 'dropped');
      expect((await inspectQueue(next)).history).toEqual({});
    },
    without: [{ script: 'tend', from: "'status', v[2] or 'void')", to: "'status', 'void')" }],
  },

  // Tick; Redis stands still; the tend that was under way knows of no grace: it withdraws a lease that
  // nobody could renew, and counts a crash.
  P16: {
    says: 'a look that was under way while Redis was away takes nothing from anybody',
    async play() {
      const scene = await given.sealed({ items: 1, limit: 1 });
      const worker = new Hand(scene);
      await worker.hold(1);
      moveClock(21_000);
      const { claims, now, resumedAt } = await scene.queue.tick('', '');
      moveClock(LEASE_MS);
      const { generation, passed } = claims[0]!;
      const late = await scene.request.tend(generation, passed, resumedAt, 15_000, now);
      const { permits, crashes, now: at } = await inspect(scene);
      expect(permits).toEqual({ worker: 1 });
      expect(crashes).toEqual({});
      expect((late as { next: number }).next).toBeLessThanOrEqual(at + 1);
      await tickOnce(scene);
      expect(await worker.renew()).toEqual({ verdict: 'ok', permits: 1 });
    },
    without: [
      {
        script: 'tend',
        from: "local stale = late and (state.granted > 0 or state.status == 'open')",
        to: 'local stale = false',
      },
      {
        script: 'tend',
        from: 'if left > 0 or more or stale then',
        to: 'if left > 0 or more then',
      },
    ],
  },

  // The clock of the request's server is a minute ahead of that of the queue's: every look seems to have
  // been under way for a minute, and a dead worker would keep its permits for ever.
  'P16, again': {
    says: 'where every look seems late, the second one takes back what a dead worker held',
    async play() {
      const scene = await given.sealed({ items: 1, limit: 1 });
      const { request, generation } = scene;
      const look = async (behindMs: number) => {
        const { now } = await inspect(scene);
        await request.tend(generation, '', 0, 15_000, Math.floor(now) - behindMs);
        return (await inspect(scene)).permits;
      };
      await new Hand(scene, 'dead').hold(1);
      moveClock(LEASE_MS + 1);
      expect(await look(60_000)).toEqual({ dead: 1 });
      moveClock(1_000);
      expect(await look(60_000)).toEqual({});
      // Clocks that agree again: the next outage is known for what it is.
      expect(await look(0)).toEqual({});
      const heir = new Hand(scene, 'heir');
      await heir.enter(1);
      await heir.take(1);
      moveClock(LEASE_MS + 1);
      expect(await look(60_000)).toEqual({ heir: 1 });
    },
    without: [
      { script: 'tend', from: 'and not (lateTick and tickedAt > lateTick)', to: '' },
      { script: 'tend', from: "redis.call('HDEL', request, 'lateTick')", to: '' },
    ],
  },

  // Created, complete, finished; a retention of a second is over; a create of the same generation comes
  // late: open, on no queue, for ever.
  P17: {
    says: 'a create that comes when a short retention is over brings nothing into being',
    async play() {
      const first = await given.sealed({ items: 0, retentionMs: 1 });
      const { id, queue, request, connection } = first;
      await queue.finish(id, first.generation, 'succeeded');
      await connection.client.unlink(request.keys.request);
      expect(await create(first)).toMatchObject({ verdict: 'void' });
      expect(await create(first, { owner: 'another' })).toMatchObject({ verdict: 'void' });
      expect((await inspect(first)).status).toBe('none');
      // What says so goes by itself, and is in nobody's way.
      const left = await connection.client.pttl(request.keys.work);
      expect(left).toBeGreaterThan(100_000);
      expect(left).toBeLessThanOrEqual(121_000);
      expect(await request.read('worker', 1)).toBe('gone');
      expect(await request.drop()).toEqual({ verdict: 'gone' });
      const next = await given.filled({ id, queue: queue.keys.queue, items: 1 });
      expect((await inspect(next)).counts).toMatchObject({ total: 1, ready: 1 });
      expect(await connection.client.pttl(request.keys.work)).toBe(-1);
    },
    without: [
      {
        script: 'create',
        from: "elseif redis.call('EXISTS', work) == 1 then",
        to: 'elseif false then',
      },
      {
        script: 'seal',
        from: 'if left <= retentionMs then',
        to: 'if true then',
      },
      {
        script: 'seal',
        from: "local last = string.format('%s-%d', state.generation, state.total)",
        to: "local last = '0-1'",
      },
    ],
  },

  // Drop; the next life of the id; the drop arrives again: the next life is gone, and nobody asked for it.
  P18: {
    says: 'a drop that arrives late leaves the next life of the id alone',
    async play() {
      const first = await given.filled();
      const { id, queue, request, generation } = first;
      const dropped = await request.drop(generation);
      expect(await request.drop(generation)).toEqual(dropped);
      await queue.finish(id, generation, 'dropped');
      // Within one millisecond the next life may be refused as too old, and would be asked for once more.
      moveClock(2);
      const next = await given.filled({ id, queue: queue.keys.queue });
      expect(await request.drop(generation)).toEqual({ verdict: 'gone' });
      expect(await inspect(next)).toMatchObject({ status: 'open', generation: next.generation });
    },
    without: [
      {
        script: 'drop',
        from: 'if generation > known or (generation < known and not dropped) then',
        to: 'if false then',
      },
    ],
  },
};

playTraces('a history that broke an earlier protocol', traces);
