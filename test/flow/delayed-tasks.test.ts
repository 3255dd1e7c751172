import { Connection, InvalidOptionError, PayloadError, QueueCommands } from '@piecework/protocol';
import type { HandlerContext } from '@piecework/worker';
import { Admin, DelayedTasks, serveHealth, type TaskWorkerOptions } from 'piecework';
import { describe, expect } from 'vitest';
import { type Flow, gate, heard, test } from '../support/flow.js';
import { until } from '../support/until.js';

/** Delayed tasks of the test, closed when it is over. */
function delayedTasks(flow: Flow, moves: readonly string[] = []): DelayedTasks {
  const tasks = new DelayedTasks({ redis: flow.redis, moves });
  flow.after(() => tasks.close());
  return tasks;
}

/** What ran, by its first argument; the first one waits until it is let go. */
function recorder({ held = false } = {}) {
  const { opened, open } = gate();
  const order: string[] = [];
  if (!held) open();
  const note = async ([what]: [string]) => {
    order.push(what);
    if (order.length === 1) await opened;
  };
  return { order, open: () => open(), note };
}

function taskWorker(tasks: DelayedTasks, flow: Flow, options: TaskWorkerOptions) {
  return tasks.worker({ logger: flow.log as never, concurrency: 1, ...options });
}

const waiting = (flow: Flow, queue = flow.queue, priority = 50) =>
  flow.connection.client.llen(new QueueCommands(flow.connection, queue).keys.list(priority));

describe('a task', () => {
  test('has an id that does not begin with a dash, and is in the list of its priority at once', async ({
    flow,
  }) => {
    const tasks = delayedTasks(flow);
    const [id, other] = await Promise.all([
      tasks.executeLater(flow.queue, 'note', ['a', { b: [1] }], { priority: 7 }),
      tasks.executeLater(flow.queue, 'note', [], { priority: 7, delayMs: 0 }),
    ]);
    expect(id).toMatch(/^\w[\w-]{20}$/);
    expect(other).not.toBe(id);
    expect(await waiting(flow, flow.queue, 7)).toBe(2);
    const given: unknown[] = [];
    const note = async (args: unknown[], { requestId, attempt }: HandlerContext) => {
      given.push([requestId, args, attempt]);
    };
    await taskWorker(tasks, flow, { queues: [flow.queue], handlers: { note } }).start();
    for (const one of [id, other])
      expect(await tasks.completion(flow.queue, one)).toMatchObject({ status: 'succeeded' });
    expect(given).toContainEqual([id, ['a', { b: [1] }], 1]);
    expect(given).toContainEqual([other, [], 1]);
  });

  test('with a delay waits in the agenda, and runs when it is due', async ({ flow }) => {
    const tasks = delayedTasks(flow);
    const { order, note } = recorder();
    const { queue } = flow;
    await taskWorker(tasks, flow, { queues: [queue], handlers: { note } }).start();
    const { agenda } = flow.queueCommands.keys;
    const far = await tasks.executeLater(queue, 'note', ['far'], { delayMs: 3_600_000 });
    expect(await flow.connection.client.zscore(agenda, far)).not.toBeNull();
    const near = await tasks.executeLater(queue, 'note', ['near'], { delayMs: 300 });
    const past = await tasks.executeLater(queue, 'note', ['past'], { runAt: 5 });
    for (const id of [near, past]) await tasks.completion(queue, id);
    expect([...order].sort()).toEqual(['near', 'past']);
    expect((await tasks.task(queue, far).status()).counts).toMatchObject({ total: 1, ready: 1 });
  });

  test('that was delayed runs before those of its priority that were not, in due order', async ({
    flow,
  }) => {
    const { queue } = flow;
    const tasks = delayedTasks(flow, [queue]);
    const { order, note } = recorder();
    const put = (what: string, options = {}) => tasks.executeLater(queue, 'note', [what], options);
    const soon = Date.now() + 50;
    const all = [
      await put('plain'),
      await put('later', { runAt: soon + 1 }),
      await put('soon', { runAt: soon }),
      await put('lower', { priority: 51, delayMs: 1 }),
      await put('urgent', { priority: 3 }),
      await put('urgent and late', { priority: 3, runAt: 5 }),
    ];
    const inLanes = async () => {
      const { lane } = flow.queueCommands.keys;
      const lengths = [50, 51, 3].map((priority) => flow.connection.client.llen(lane(priority)));
      return (await Promise.all(lengths)).join();
    };
    await until(async () => (await inLanes()) === '2,1,1');
    await taskWorker(tasks, flow, { queues: [queue], handlers: { note } }).start();
    for (const id of all) await tasks.completion(queue, id);
    expect(order).toEqual(['urgent and late', 'urgent', 'soon', 'later', 'plain', 'lower']);
  });

  test('is added once under an id of the caller, and known after its end', async ({ flow }) => {
    const tasks = delayedTasks(flow);
    const { order, note } = recorder();
    const { queue } = flow;
    const id = flow.id('once');
    const options = { id, delayMs: 50, attempts: 2 };
    const put = (what: string) => tasks.executeLater(queue, 'note', [what], options);
    expect(await Promise.all([put('it'), put('it')])).toEqual([id, id]);
    await expect(put('else')).rejects.toMatchObject({ code: 'EXISTS', differs: ['items'] });
    await expect(put('else')).rejects.toThrow(
      `${id}: there is already a task of this id, which differs in its arguments; give a new task an id of its own, or none`,
    );
    await expect(tasks.executeLater(queue, 'other', ['it'], options)).rejects.toThrow(
      /a task of this id, which differs in its name; /,
    );
    await taskWorker(tasks, flow, { queues: [queue], handlers: { note } }).start();
    await tasks.completion(queue, id);
    expect(await put('it')).toBe(id);
    expect(await tasks.completion(queue, id)).toMatchObject({ counts: { total: 1, succeeded: 1 } });
    expect(order).toEqual(['it']);
  });

  test('gets the attempts that were asked for, and its failure is kept', async ({ flow }) => {
    const tasks = delayedTasks(flow);
    const { queue } = flow;
    let runs = 0;
    const fail = async () => {
      runs += 1;
      throw new Error('no');
    };
    await taskWorker(tasks, flow, { queues: [queue], handlers: { fail } }).start();
    const id = await tasks.executeLater(queue, 'fail', [1], { attempts: 3, delayMs: 10 });
    expect(await tasks.completion(queue, id)).toMatchObject({ status: 'failed' });
    const failures = [];
    for await (const failure of tasks.task(queue, id).failures()) failures.push(failure);
    expect(failures).toMatchObject([{ attempts: 3, error: { message: 'no' } }]);
    expect(runs).toBe(3);
  });

  test('that nobody runs is awaited in vain, and the error says why', async ({ flow }) => {
    const tasks = delayedTasks(flow);
    const { queue } = flow;
    const soon = { timeoutMs: 30 };
    const saysOf = (id: string, why: RegExp) =>
      until(() =>
        tasks
          .completion(queue, id, soon)
          .catch(({ name, message }: Error) => name === 'TimeoutError' && why.test(message)),
      );
    const id = await tasks.executeLater(queue, 'nosuch', [1]);
    await saysOf(id, /: not within 30 ms; its queue has no worker\. Start one/);
    const later = await tasks.executeLater(queue, 'nosuch', [1], { delayMs: 3_600_000 });
    await saysOf(later, /; its start is delayed until 20/);
    await taskWorker(tasks, flow, { queues: [queue], handlers: { other: () => 1 } }).start();
    await saysOf(
      id,
      /; no worker serves task nosuch\. Start one that does, or cancel the request if the name/,
    );
    await tasks.cancel(queue, id);
    await tasks.cancel(queue, later);
  });

  test('is removed by a cancel, also before it is due', async ({ flow }) => {
    const tasks = delayedTasks(flow);
    const { queue } = flow;
    const id = await tasks.executeLater(queue, 'note', [1], { delayMs: 3_600_000 });
    expect(await tasks.cancel(queue, id)).toEqual({ status: 'complete', outcome: 'cancelled' });
    expect(await tasks.completion(queue, id)).toMatchObject({ counts: { cancelled: 1 } });
  });

  test('of wrong input is refused before anything is written', async ({ flow }) => {
    const tasks = delayedTasks(flow);
    const { queue, redis } = flow;
    const refused = async (put: () => unknown, field: string) => {
      await expect(Promise.resolve().then(put)).rejects.toBeInstanceOf(InvalidOptionError);
      await expect(Promise.resolve().then(put)).rejects.toMatchObject({ field });
    };
    const put = (options: object) => () => tasks.executeLater(queue, 'note', [], options);
    await refused(() => tasks.executeLater('a b', 'note', []), 'queue');
    await refused(() => tasks.executeLater(queue, '', []), 'name');
    await refused(() => tasks.executeLater(queue, 'note', 'text' as never), 'args');
    await refused(put({ delayMs: -1 }), 'delayMs');
    await refused(put({ delayMs: 5, runAt: 5 }), 'runAt');
    await refused(put({ delayMs: 0, runAt: 5 }), 'runAt');
    await refused(put({ priority: 100 }), 'priority');
    await refused(put({ id: 'a b' }), 'id');
    await refused(put({ retentionMs: 1 }), 'retentionMs');
    await refused(put({ limit: 2 }), 'limit');
    await refused(() => tasks.task(queue, 'a b'), 'id');
    await expect(tasks.cancel(queue, 'a b')).rejects.toMatchObject({ field: 'id' });
    await expect(tasks.completion('a b', 'id')).rejects.toMatchObject({ field: 'queue' });
    await refused(() => new DelayedTasks({ redis, moves: ['a b'] }), 'moves');
    const worker = (options: object) => () =>
      tasks.worker({ queues: [queue], handlers: { note: () => 1 }, ...options });
    await refused(worker({ queues: undefined }), 'queues');
    await refused(worker({ handlers: undefined }), 'handlers');
    await refused(worker({ queues: [] }), 'queues');
    await refused(worker({ queues: [queue, queue] }), 'queues');
    await refused(worker({ handlers: {} }), 'handlers');
    await refused(worker({ handlers: { 'a b': () => 1 } }), 'handlers');
    await refused(worker({ handlers: { note: 1 } }), 'handlers');
    await refused(worker({ concurrency: 0 }), 'concurrency');
    await refused(worker({ handler: () => 1 }), 'handler');
    const round: unknown[] = [];
    round.push(round);
    await expect(tasks.executeLater(queue, 'note', round)).rejects.toThrow(PayloadError);
    expect(await flow.keys()).toEqual([]);
  });
});

describe('a worker over several queues', () => {
  /** Two queues, and a worker over both of one slot. */
  function twoQueues(flow: Flow, handlers: TaskWorkerOptions['handlers'], concurrency = 1) {
    const tasks = delayedTasks(flow);
    const urgent = flow.queue;
    const mail = `${flow.queue}.mail`;
    const worker = taskWorker(tasks, flow, { queues: [urgent, mail], handlers, concurrency });
    return { tasks, urgent, mail, worker };
  }

  test('takes from the first queue that has a task', async ({ flow }) => {
    const { order, open, note } = recorder({ held: true });
    const { tasks, urgent, mail, worker } = twoQueues(flow, { note });
    await worker.start();
    await tasks.executeLater(mail, 'note', ['first']);
    await until(() => order.length === 1);
    for (const n of [1, 2, 3]) await tasks.executeLater(mail, 'note', [`m${n}`], { priority: n });
    for (const n of [1, 2, 3]) await tasks.executeLater(urgent, 'note', [`u${n}`], { priority: n });
    const all = async () => {
      const of = (queue: string) => Promise.all([1, 2, 3].map((n) => waiting(flow, queue, n)));
      return [...(await of(urgent)), ...(await of(mail))].join();
    };
    await until(async () => (await all()) === '1,1,1,1,1,1');
    open();
    await until(() => order.length === 7);
    expect(order).toEqual(['first', 'u1', 'u2', 'u3', 'm1', 'm2', 'm3']);
  });

  test('takes what came in an earlier queue before the next of a later one', async ({ flow }) => {
    const order: string[] = [];
    const note = async ([what]: [string]) => {
      order.push(what);
      if (!what.startsWith('m')) return;
      await tasks.executeLater(urgent, 'note', [`after ${what}`]);
      // It may have come to a pop that waited while a slot was free, and goes back then.
      await until(async () => (await waiting(flow, urgent)) === 1);
    };
    const { tasks, urgent, mail, worker } = twoQueues(flow, { note });
    for (const n of [1, 2, 3, 4]) await tasks.executeLater(mail, 'note', [`m${n}`]);
    await worker.start();
    await until(() => order.length === 8);
    expect(order).toEqual([1, 2, 3, 4].flatMap((n) => [`m${n}`, `after m${n}`]));
  });

  test('runs at most as many tasks as it has slots, over all queues', async ({ flow }) => {
    let running = 0;
    let most = 0;
    const done: string[] = [];
    const note = async ([what]: [string]) => {
      running += 1;
      most = Math.max(most, running);
      // However slow this machine is, all slots are in use once.
      await until(() => most === 4);
      await new Promise((resolve) => setTimeout(resolve, 3));
      running -= 1;
      done.push(what);
    };
    const { tasks, urgent, mail, worker } = twoQueues(flow, { note }, 4);
    await worker.start();
    const put = (queue: string) => (n: number) =>
      tasks.executeLater(queue, 'note', [`${queue} ${n}`], n % 2 ? { delayMs: n } : {});
    const numbers = Array.from({ length: 60 }, (_, n) => n);
    await Promise.all([...numbers.map(put(urgent)), ...numbers.map(put(mail))]);
    await until(() => done.length === 120);
    expect(new Set(done).size).toBe(120);
    expect(most).toBe(4);
    expect(worker.running).toBe(0);
  });

  test('continues with the others while one of them is paused', async ({ flow }) => {
    const { order, open, note } = recorder({ held: true });
    const { tasks, urgent, mail, worker } = twoQueues(flow, { note });
    await worker.start();
    await tasks.executeLater(mail, 'note', ['first']);
    await until(() => order.length === 1);
    // Who does not listen yet learns of a pause later.
    await heard(flow);
    const admin = new Admin({ redis: flow.connection, queue: urgent });
    await admin.pauseQueue();
    await tasks.executeLater(urgent, 'note', ['u']);
    const last = await tasks.executeLater(mail, 'note', ['m']);
    open();
    await tasks.completion(mail, last);
    expect(order).toEqual(['first', 'm']);
    await admin.resumeQueue();
    await until(() => order.length === 3);
    expect(order).toEqual(['first', 'm', 'u']);
  });

  test('runs a suspect of one queue isolated, whatever work the other queues have', {
    tags: 'one-server',
  }, async ({ flow }) => {
    const { opened, open } = gate();
    const events: string[] = [];
    const note = async ([what]: [string]) => {
      events.push(`start ${what}`);
      if (what === 'slow') await opened;
      events.push(`end ${what}`);
    };
    const { tasks, urgent, mail, worker } = twoQueues(flow, { note }, 3);
    const id = await tasks.executeLater(mail, 'note', ['suspect'], { maxCrashes: 2 });
    const request = flow.request(id);
    const generation = Number((await request.state())?.generation);
    // Its crash is real: of a holder with a lease of 1 ms.
    await request.enter({
      generation,
      worker: 'dead',
      op: 1,
      want: 1,
      leaseMs: 1,
      tasks: '*',
      epochs: [],
    });
    await request.read('dead', 1);
    await until(async () => {
      await request.tend(generation, '');
      return (await request.inspect())?.inFlight === 0;
    });
    await tasks.executeLater(urgent, 'note', ['slow']);
    await worker.start();
    const [, ofMail] = worker.workers;
    await until(async () => (await request.pending(ofMail?.id ?? '', 10)).length === 1);
    await tasks.executeLater(urgent, 'note', ['late']);
    expect(events).toEqual(['start slow']);
    open();
    await until(() => events.length === 6);
    const each = ['slow', 'suspect', 'late'].flatMap((what) => [`start ${what}`, `end ${what}`]);
    expect(events).toEqual(each);
  });

  test('reports the health of each queue, and closes all of them', async ({ flow }) => {
    const { note } = recorder();
    const { urgent, mail, worker } = twoQueues(flow, { note });
    await worker.start();
    await until(() => worker.health().every(({ ready }) => ready));
    expect(worker.health().map(({ queue, concurrency }) => [queue, concurrency])).toEqual([
      [urgent, 1],
      [mail, 1],
    ]);
    await using server = await serveHealth(() => worker.health(), { port: 0 });
    const ask = async () => {
      const answer = await fetch(`http://127.0.0.1:${server.port}/ready`);
      return { status: answer.status, body: await answer.json() };
    };
    expect(await ask()).toMatchObject({
      status: 200,
      body: { live: true, ready: true, why: [], workers: [{ queue: urgent }, { queue: mail }] },
    });
    await worker.workers[1]?.close();
    expect(await ask()).toMatchObject({
      status: 503,
      body: { ready: false, why: worker.workers[1]?.health().why, workers: [{ ready: true }, {}] },
    });
    const connection = Connection.open(flow.redis);
    flow.after(() => connection.close());
    const registered = () =>
      Promise.all([urgent, mail].map((queue) => new QueueCommands(connection, queue).workers()));
    expect((await registered()).map(({ length }) => length)).toEqual([1, 0]);
    await worker.close();
    expect((await registered()).map(({ length }) => length)).toEqual([0, 0]);
    expect(worker.health().map(({ state }) => state)).toEqual(['closed', 'closed']);
  });
});
