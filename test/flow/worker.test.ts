import { decodeError } from '@piecework/protocol';
import type { HandlerContext } from '@piecework/worker';
import { Redis, ReplyError } from 'ioredis';
import { describe, expect } from 'vitest';
import { type Flow, gate, mastersOf, numbers, test } from '../support/flow.js';
import { interceptScripts } from '../support/script-calls.js';
import { scriptOf } from '../support/script-names.js';
import { until } from '../support/until.js';

/** Fails unless every slot of a started worker can be used: so many sub-requests meet in its handler. */
async function expectAllSlots(flow: Flow, meeting: Meeting, slots: number): Promise<void> {
  meeting.expect(slots);
  const { id } = await flow.producer().submit(numbers(slots), { limit: slots });
  await meeting.met();
  expect(await flow.complete(id)).toMatchObject({ succeeded: slots });
}

/** A handler in which all wait until so many are there; until then it does something else. */
class Meeting {
  #wanted = 0;
  #here = 0;
  #gate = gate();
  expect(n: number): void {
    this.#wanted = n;
    this.#here = 0;
    this.#gate = gate();
  }
  async met(): Promise<void> {
    await until(() => this.#here === this.#wanted, { what: `${this.#wanted} handlers at once` });
    this.#gate.open();
    this.#wanted = 0;
  }
  get called(): boolean {
    return this.#wanted > 0;
  }
  async attend(): Promise<void> {
    this.#here += 1;
    await this.#gate.opened;
  }
}

async function failedOf(flow: Flow, id: string, index: number) {
  const [text] = await flow.request(id).failures([index]);
  return text ? decodeError(text) : null;
}

describe('a handler', () => {
  test('receives its sub-request and returns the result', async ({ flow }) => {
    const seen: Pick<HandlerContext, 'requestId' | 'index' | 'attempt'>[] = [];
    const handler = async (payload: { n: number }, ctx: HandlerContext) => {
      const { requestId, index, attempt, signal, log, progress } = ctx;
      seen.push({ requestId, index, attempt });
      log.info({ n: payload.n }, 'works');
      progress(1);
      if (signal.aborted) throw new Error('aborted');
      return { twice: payload.n * 2 };
    };
    await flow.worker({ handler }).start();
    const { id } = await flow.producer().submit([{ n: 1 }, { n: 2 }]);
    expect(await flow.complete(id)).toMatchObject({ outcome: 'succeeded', succeeded: 2 });
    expect(await flow.results(id)).toEqual(
      new Map([
        [0, { twice: 2 }],
        [1, { twice: 4 }],
      ]),
    );
    expect(seen.sort((a, b) => a.index - b.index)).toEqual([
      { requestId: id, index: 0, attempt: 1 },
      { requestId: id, index: 1, attempt: 1 },
    ]);
  });

  test('may be synchronous, and may return nothing', async ({ flow }) => {
    await flow.worker({ handler: (n: number) => (n === 1 ? undefined : n) }).start();
    const { id } = await flow.producer().submit([0, 1, null]);
    expect(await flow.complete(id)).toMatchObject({ outcome: 'succeeded' });
    expect(Object.fromEntries(await flow.results(id))).toEqual({ 0: 0, 1: '', 2: null });
  });

  test('that throws fails its sub-request, and the error is kept', async ({ flow }) => {
    class OddError extends Error {
      override name = 'OddError';
    }
    const handler = async (n: number) => {
      if (n % 2 === 1) throw new OddError(`${n} is odd`);
      return n;
    };
    await flow.worker({ handler }).start();
    const { id } = await flow.producer().submit(numbers(5));
    expect(await flow.complete(id)).toMatchObject({ outcome: 'failed', succeeded: 3, failed: 2 });
    const kept = await failedOf(flow, id, 3);
    expect(kept).toMatchObject({ name: 'OddError', message: '3 is odd' });
    expect(kept?.stack).toContain('worker.test.ts');
    expect(await failedOf(flow, id, 2)).toBeNull();
    const payload = await flow.connection.client.hget(flow.request(id).keys.failed, '3:payload');
    expect(payload).toBe('3');
  });

  const unspeakable = {
    toString() {
      throw new Error('no words');
    },
  };
  const thrown: [string, unknown][] = [
    ['undefined', undefined],
    ['a string', 'words'],
    ['an object without a prototype', Object.create(null)],
    ['an object that cannot be put into words', unspeakable],
    [
      'an error whose message throws',
      Object.defineProperty(new Error('x'), 'message', {
        get: () => {
          throw new Error('no words');
        },
      }),
    ],
    ['an error of megabytes', new Error('x'.repeat(5_000_000))],
  ];
  test.for(thrown)('may throw %s', async ([, what], { flow }) => {
    const handler = () => {
      throw what;
    };
    await flow.worker({ handler }).start();
    const { id } = await flow.producer().submit([1, 2]);
    expect(await flow.complete(id, 10_000)).toMatchObject({ outcome: 'failed', failed: 2 });
    const [text] = await flow.request(id).failures([0]);
    expect(typeof decodeError(text as string).message).toBe('string');
    expect((text as string).length).toBeLessThan(10_000);
  });

  const circular: unknown[] = [];
  circular.push(circular);
  test.for<[string, unknown]>([
    ['a BigInt', 1n],
    ['a function', () => 1],
    ['a circular value', circular],
    ['more than maxResultBytes', 'x'.repeat(1_000)],
  ])('that returns %s fails its sub-request', async ([, result], { flow }) => {
    await flow.worker({ handler: () => result, maxResultBytes: 1_000 }).start();
    const { id } = await flow.producer().submit([1]);
    expect(await flow.complete(id)).toMatchObject({ outcome: 'failed', failed: 1 });
    expect(await failedOf(flow, id, 0)).toMatchObject({ name: 'PayloadError' });
  });

  test('may end together with others: a record has at most a megabyte of results', async ({
    flow,
  }) => {
    const all = gate();
    const value = 'ä'.repeat(20_000);
    const meant = { limit: 60, id: flow.id('large') };
    const handler = async () => {
      await all.opened;
      return value;
    };
    const worker = flow.worker({ handler, concurrency: 60, maxResultBytes: 41_000 });
    await worker.start();
    const { id } = await flow.producer().submit(numbers(60), meant);
    await until(() => worker.health().running === 60);
    all.open();
    expect(await flow.complete(id)).toMatchObject({ succeeded: 60 });
    const rows = await flow.request(id).results('-', 100);
    const bytes = rows.map(({ records }) =>
      records.reduce((sum, one) => sum + Buffer.byteLength(one.value), 0),
    );
    expect(Math.max(...bytes)).toBeLessThanOrEqual(1_000_000);
    expect(new Set((await flow.results(id)).values())).toEqual(new Set([value]));
  });

  test('shows its progress, also while others of its request come and go', async ({ flow }) => {
    const done = gate();
    const handler = async (n: number, ctx: HandlerContext) => {
      if (n > 0) {
        await new Promise((resolve) => setTimeout(resolve, 5));
        return;
      }
      ctx.progress(1);
      ctx.progress(41.5);
      await done.opened;
    };
    await flow.worker({ handler, leaseMs: 30_000, concurrency: 2 }).start();
    const open = await flow.producer().open({ id: flow.id('busy') });
    await open.append(0);
    const feeding = setInterval(() => void open.append(1).then(() => open.flush()), 10);
    flow.after(() => clearInterval(feeding));
    await until(
      async () => (await flow.request(flow.id('busy')).inspect())?.progress[0] === '41.5',
      {
        what: 'the progress shows',
        timeoutMs: 8_000,
      },
    );
    done.open();
    clearInterval(feeding);
    await open.seal();
    await flow.complete(flow.id('busy'));
  });

  test('reports its progress again when the renewal that had it fails', {
    tags: ['one-server'],
  }, async ({ flow }) => {
    const client = new Redis(flow.redis as string);
    let failed = 0;
    interceptScripts(client, async (args, send) => {
      if (failed > 0 || scriptOf('evalsha', args) !== 'renew') return send();
      failed += 1;
      throw new ReplyError('TRYAGAIN Multiple keys request during rehashing of slot');
    });
    const done = gate();
    const handler = async (_: number, ctx: HandlerContext) => {
      ctx.progress(7);
      await done.opened;
    };
    const worker = flow.worker({ redis: client, handler, leaseMs: 30_000 });
    flow.after(async () => {
      await worker.close();
      client.disconnect();
    });
    await worker.start();
    const { id } = await flow.producer().submit([1]);
    await until(async () => (await flow.request(id).inspect())?.progress[0] === '7');
    expect(failed).toBe(1);
    done.open();
    await flow.complete(id);
  });

  test('gets an error for progress that is not a number; infinite numbers are ignored', async ({
    flow,
  }) => {
    const done = gate();
    const handler = async (n: number, ctx: HandlerContext) => {
      if (n > 0) return ctx.progress({ percent: 5 } as never);
      ctx.progress(3);
      ctx.progress(0 / 0);
      await done.opened;
    };
    await flow.worker({ handler }).start();
    const { id } = await flow.producer().submit(numbers(2), { attempts: 1 });
    const error = `progress: {"percent":5} is not allowed; allowed: a number`;
    await until(async () => (await flow.request(id).inspect())?.progress[0] === '3');
    done.open();
    expect(await flow.complete(id)).toMatchObject({ succeeded: 1, failed: 1 });
    expect(
      JSON.parse(
        String(
          await flow
            .request(id)
            .failures([1])
            .then(([text]) => text),
        ),
      ),
    ).toMatchObject({ name: 'InvalidOptionError', message: error });
  });

  test('reports its progress beside thousands of others', async ({ flow }) => {
    const done = gate();
    const handler = async (_: number, ctx: HandlerContext) => {
      ctx.progress(7);
      await done.opened;
    };
    await flow.worker({ handler, leaseMs: 30_000, concurrency: 4_500 }).start();
    const { id } = await flow
      .producer()
      .submit(numbers(4_500), { limit: 4_500, results: 'discard' });
    await until(async () => {
      const seen = await flow.connection.client.hlen(flow.request(id).keys.progress);
      return seen === 4_500;
    });
    done.open();
    await flow.complete(id);
    expect(flow.log.lines).toEqual([]);
  });
});

describe('a worker', () => {
  test('never runs more than its slots, over all requests', async ({ flow }) => {
    let now = 0;
    let most = 0;
    const meeting = new Meeting();
    const handler = async (n: number) => {
      now += 1;
      most = Math.max(most, now);
      if (meeting.called) await meeting.attend();
      else await new Promise((resolve) => setTimeout(resolve, n % 4));
      now -= 1;
    };
    await flow.worker({ concurrency: 9, handler, quantumMs: 5 }).start();
    meeting.expect(9);
    const producer = flow.producer();
    const submitted = await Promise.all(
      numbers(12).map((n) =>
        producer.submit(numbers(150), { limit: 1 + n, priority: 50 + (n % 3) }),
      ),
    );
    await meeting.met();
    for (const { id } of submitted) await flow.complete(id);
    expect(most).toBe(9);
    await expectAllSlots(flow, meeting, 9);
  });

  test('completes many small requests', async ({ flow }) => {
    const meeting = new Meeting();
    const handler = async (n: number) => {
      if (meeting.called) await meeting.attend();
      return n;
    };
    await Promise.all(numbers(2).map(() => flow.worker({ concurrency: 20, handler }).start()));
    const producer = flow.producer();
    const submitted = await Promise.all(
      numbers(500).map((n) => producer.submit(numbers(1 + (n % 3)))),
    );
    for (const { id, total } of submitted) {
      expect(await flow.complete(id)).toMatchObject({ outcome: 'succeeded', succeeded: total });
    }
    await expectAllSlots(flow, meeting, 40);
  });

  test('continues after the server has lost its scripts', { tags: 'own-server' }, async ({
    flow,
  }) => {
    await flow.worker({ concurrency: 10, handler: (n: number) => n }).start();
    const submitting = flow.producer().submit(numbers(3_000), { id: flow.id('flushed') });
    for (let i = 0; i < 10; i += 1) {
      for (const master of mastersOf(flow.connection)) await master.script('FLUSH');
    }
    await submitting;
    await until(
      async () => Number((await flow.request(flow.id('flushed')).state())?.succeeded) > 100,
    );
    for (const master of mastersOf(flow.connection)) await master.script('FLUSH');
    expect(await flow.complete(flow.id('flushed'))).toMatchObject({ succeeded: 3_000, failed: 0 });
    expect((await flow.results(flow.id('flushed'))).size).toBe(3_000);
  });

  test('loses nothing when its connections are cut, and counts nothing twice', {
    tags: 'own-server',
    timeout: 240_000,
  }, async ({ flow }) => {
    const meeting = new Meeting();
    let runs = 0;
    const handler = async (n: number) => {
      if (meeting.called) await meeting.attend();
      runs += 1;
      await new Promise((resolve) => setTimeout(resolve, 1));
      return n;
    };
    await flow.worker({ concurrency: 10, handler, leaseMs: 3_000 }).start();
    const { id } = await flow.producer().submit(numbers(4_000), { limit: 10 });
    for (const share of [0.2, 0.4, 0.6, 0.8]) {
      // A cut may take all tokens along, which two audits find.
      await until(async () => Number((await flow.request(id).state())?.succeeded) > 4_000 * share, {
        timeoutMs: 40_000,
      });
      for (const master of mastersOf(flow.connection)) await cutOthers(master);
    }
    const state = await flow.complete(id, 55_000);
    expect(state).toMatchObject({ outcome: 'succeeded', succeeded: 4_000, total: 4_000 });
    expect((await flow.results(id)).size).toBe(4_000);
    expect(runs).toBeGreaterThanOrEqual(4_000);
    await expectAllSlots(flow, meeting, 10);
  });

  test('finds the sub-requests of a read whose reply was lost, although it has other work', async ({
    flow,
  }) => {
    const first = gate();
    const handler = async (n: number) => {
      if (n === 0) await first.opened;
      return n;
    };
    const worker = flow.worker({ concurrency: 4, handler, leaseMs: 1_500 });
    await worker.start();
    const open = await flow.producer().open({ id: flow.id('lost-reply') });
    await open.append(0);
    await open.flush();
    await until(() => worker.running === 1);
    // Read in the worker's name, as by a read whose reply got lost, before their tokens are pushed.
    const { id, generation } = open;
    const request = flow.request(id);
    const appended = await request.append(generation, 'ghost', 0, ['1', '2', '3']);
    if (appended.verdict !== 'ok') throw new Error(appended.verdict);
    expect(await request.read(worker.id, 3)).toHaveLength(3);
    await flow.queueCommands.push({ id, generation, ...appended });
    await until(async () => (await request.state())?.succeeded === 3, {
      what: 'the sub-requests of the lost reply are done',
      timeoutMs: 10_000,
    });
    first.open();
    await open.seal();
    expect(await flow.complete(flow.id('lost-reply'))).toMatchObject({ succeeded: 4, total: 4 });
  });

  test('finds the sub-requests of an enter whose reply was lost', async ({ flow }) => {
    const worker = flow.worker({ concurrency: 4, handler: async (n: number) => n });
    await worker.start();
    const open = await flow.producer().open({ id: flow.id('lost-enter') });
    const { id, generation } = open;
    const request = flow.request(id);
    const appended = await request.append(generation, 'ghost', 0, ['1', '2', '3']);
    if (appended.verdict !== 'ok') throw new Error(appended.verdict);
    // Its first enter, answered to nobody: its own comes as the repeat.
    const lost = await request.enter({
      generation,
      worker: worker.id,
      op: 1,
      want: 4,
      leaseMs: 30_000,
      tasks: '*',
      epochs: ['1'],
      most: 16,
    });
    expect(lost).toMatchObject({ permits: 3, ready: 0, entries: { length: 3 } });
    await flow.queueCommands.push({ id, generation, ...appended });
    // A worker that waited for a tick would wait for the first one, in twenty seconds.
    await until(async () => (await request.state())?.succeeded === 3, {
      what: 'the sub-requests of the lost reply are done',
      timeoutMs: 10_000,
    });
    await open.seal();
    expect(await flow.complete(id)).toMatchObject({ succeeded: 3, total: 3 });
  });

  test('aborts the handlers of a dropped request, whose slots stay occupied until they end', async ({
    flow,
  }) => {
    const stubborn = gate();
    const dropped = gate();
    let aborted = 0;
    let now = 0;
    let most = 0;
    const handler = async (n: number, { signal }: HandlerContext) => {
      now += 1;
      most = Math.max(most, now);
      if (n < 0) {
        signal.addEventListener('abort', () => {
          aborted += 1;
        });
        await stubborn.opened;
      } else {
        await (n === 99 ? dropped.opened : new Promise((resolve) => setTimeout(resolve, 3)));
      }
      now -= 1;
    };
    const worker = flow.worker({ concurrency: 4, handler, leaseMs: 1_000 });
    await worker.start();
    const { id, generation } = await flow
      .producer()
      .submit([-1, -2, 99, -3], { id: flow.id('dropped') });
    await until(() => worker.running === 4);
    await flow.request(id).drop();
    await flow.queueCommands.finish(id, generation, 'dropped');
    dropped.open();
    await until(() => aborted === 3, { what: 'the handlers are aborted' });
    const other = await flow.producer().submit(numbers(50));
    expect(await flow.complete(other.id)).toMatchObject({ succeeded: 50 });
    expect(most).toBeLessThanOrEqual(4);
    stubborn.open();
    await until(() => now === 0);
  });

  test('makes few calls when there is nothing to do', { tags: 'own-server' }, async ({ flow }) => {
    await flow.worker({ handler: () => 1 }).start();
    // A request that is done, and one that waits for its producer.
    await flow.producer().submit([1, 2, 3], { id: flow.id('before') });
    await flow.complete(flow.id('before'));
    const open = await flow.producer().open({ id: flow.id('waits') });
    await open.append(1);
    await open.flush();
    await until(async () => (await flow.request(flow.id('waits')).state())?.succeeded === 1);
    const before = await calls(flow);
    await until(async () => (await calls(flow)).questions >= before.questions + 100, {
      what: 'this test has asked 100 times',
      everyMs: 20,
    });
    const after = await calls(flow);
    // Two seconds: a tick of worker and producer each, a pop or two.
    expect(after.others - before.others).toBeLessThan(20);
    await open.seal();
  });

  test('makes few calls while a request is paused or its limit is used up', {
    tags: 'own-server',
  }, async ({ flow }) => {
    const held = gate();
    const workers = numbers(3).map(() =>
      flow.worker({ concurrency: 5, handler: () => held.opened, quantumMs: 0 }),
    );
    await Promise.all(workers.map((worker) => worker.start()));
    const producer = flow.producer();
    await producer.submit(numbers(100), { id: flow.id('at-limit'), limit: 2 });
    await until(() => workers.reduce((sum, { running }) => sum + running, 0) === 2);
    await flow.connection.client.hset(
      flow.request(flow.id('at-limit')).keys.request,
      'paused',
      '1',
    );
    await producer.submit(numbers(100), { id: flow.id('at-limit-too'), limit: 2 });
    await until(() => workers.reduce((sum, { running }) => sum + running, 0) === 4);
    const before = await calls(flow);
    await until(async () => (await calls(flow)).questions >= before.questions + 100, {
      what: 'this test has asked 100 times',
      everyMs: 20,
    });
    const after = await calls(flow);
    expect(after.others - before.others).toBeLessThan(40);
    await flow.connection.client.hdel(flow.request(flow.id('at-limit')).keys.request, 'paused');
    held.open();
    await flow.complete(flow.id('at-limit-too'));
    await flow.queueCommands.scheduleTend(
      flow.id('at-limit'),
      Number((await flow.request(flow.id('at-limit')).state())?.generation),
      0,
    );
    await flow.complete(flow.id('at-limit'), 50_000);
  });
});

/** Commands that clients sent: this test's questions, and what all others asked. */
async function calls(flow: Flow): Promise<{ questions: number; others: number }> {
  const counts = { questions: 0, others: 0 };
  for (const master of mastersOf(flow.connection)) {
    const info = await master.info('commandstats');
    for (const [, command, times] of info.matchAll(/cmdstat_([^:]+):calls=(\d+)/g)) {
      if (command === 'info') counts.questions += Number(times);
      // What scripts call inside is counted as well, so only calls of clients are examined.
      if (/^(evalsha|eval|blmpop)$/.test(command as string)) counts.others += Number(times);
    }
  }
  return counts;
}

/** Cuts every connection to a server but this one and those of its replicas. */
async function cutOthers(master: ReturnType<typeof mastersOf>[0]): Promise<void> {
  const own = await master.client('ID');
  const list = (await master.client('LIST')) as string;
  for (const line of list.trim().split('\n')) {
    const id = /^id=(\d+)/.exec(line)?.[1];
    const flags = /flags=(\S+)/.exec(line)?.[1] ?? '';
    if (id && Number(id) !== own && !/[SM]/.test(flags)) await master.client('KILL', 'ID', id);
  }
}
