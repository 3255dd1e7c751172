import { ControlCommands, QueueControlCommands, ReaderCommands } from '@piecework/protocol';
import { describe, expect, it } from 'vitest';
import { scriptNames } from '../../scripts/lua-source.mjs';
import { moveClock, useTestClock } from '../support/clock.js';
import { settleAll } from '../support/compact.js';
import {
  back,
  create,
  failure,
  freshName,
  given,
  Hand,
  holds,
  items,
  LEASE_MS,
  PRODUCER,
  popAll,
  type Scene,
  success,
} from '../support/given.js';
import { inspect, inspectQueue, snapshot } from '../support/peek.js';
import {
  completeWithFailures,
  openedAgain,
  REDRIVE_LEASE_MS,
  REDRIVER,
  redriveOf,
} from '../support/redriven.js';
import { compact, submitWhole } from '../support/whole.js';

/*
 * Any call may be sent twice: each script, run twice, leaves the state of one run. The few that do
 * more the second time (they push or take again, which nothing minds) are below, with what they do.
 */

useTestClock();

const control = ({ connection, id }: Scene) => new ControlCommands(connection, id);
const queueControl = ({ connection, queue }: Scene) =>
  new QueueControlCommands(connection, queue.keys.queue);

interface Case {
  readonly given: () => Promise<Scene>;
  readonly call: (scene: Scene) => Promise<unknown>;
}

/** Replies to the first and the second call, and whether the second changed anything. */
async function twice({ given: scenery, call }: Case) {
  const scene = await scenery();
  const first = await call(scene);
  const once = await snapshot(scene);
  const second = await call(scene);
  const again = await snapshot(scene);
  return { first, second, once, again };
}

const held = async (n = 2) => {
  const scene = await given.sealed({ items: 4, attempts: 2, limit: 4 });
  await new Hand(scene).hold(n);
  return scene;
};

const first = ({ generation }: Scene) => ({ entry: `${generation}-0` });
const second = ({ generation }: Scene) => ({ entry: `${generation}-1` });

const settling =
  (outcomes: (scene: Scene) => Parameters<Hand['settle']>[0], keep = 1) =>
  async (scene: Scene) => {
    const numbers = { op: 2, leaseMs: LEASE_MS, keep, running: 0, read: 0 };
    const { request, generation } = scene;
    const { settled } = await request.settle(generation, 'worker', numbers, outcomes(scene));
    // What the first call minted is counted; the second has nothing to mint.
    return settled.verdict === 'ok' ? { ...settled, mint: 0 } : settled;
  };

const passed = async () => {
  const scene = await given.sealed({ items: 2, limit: 1 });
  moveClock(21_000);
  return scene;
};

const oneTag = () => {
  const name = freshName('both');
  return { id: name, queue: name };
};

const same: Record<string, Case> = {
  intent: { given: () => given.nothing(), call: ({ queue, id }) => queue.intent(id) },
  'intent, above the life that is open': {
    given: () => given.opened(),
    call: ({ queue, id, generation }) => queue.intent(id, generation),
  },
  // Both sides have the name as their hash tag, so that a cluster allows it.
  submit: { given: () => given.nothing(oneTag()), call: (scene) => submitWhole(scene) },
  'submit, of an id that is open': {
    given: () => given.opened(oneTag()),
    call: (scene) => submitWhole(scene, { delayMs: 5_000 }),
  },
  'submit, of an id that is retained': {
    given: () => given.sealed({ ...oneTag(), items: 0 }),
    call: (scene) => submitWhole(scene),
  },
  'enter, of a compact request': {
    given: () => compact(oneTag()),
    // A repeat makes a stream of it.
    call: (scene) => new Hand(scene).reenter(3, [1], 1).then(({ verdict }) => verdict),
  },
  'settle, of all of a compact request': {
    given: async () => {
      const scene = await compact(oneTag());
      await new Hand(scene).holdAtOnce(3);
      return scene;
    },
    call: (scene) => settleAll(scene),
  },
  'read-state': {
    given: () => given.created(),
    call: ({ request }) => request.fields('status', 'total', 'absent'),
  },
  pending: {
    given: () => compact(oneTag()),
    call: ({ request }) => request.pending('worker', 9),
  },
  create: { given: () => given.opened(), call: (scene) => create(scene) },
  'create, with its items': {
    given: () => given.opened(),
    call: (scene) => create(scene, { delayMs: 5_000 }, { call: 'call', items: items(3) }),
  },
  'create, of an id that is retained': {
    given: async () => {
      const old = await given.sealed({ items: 0 });
      await old.queue.finish(old.id, old.generation, 'succeeded');
      return given.opened({ id: old.id, queue: old.queue.keys.queue });
    },
    call: (scene) => create(scene),
  },
  append: {
    given: () => given.created(),
    call: async ({ request, generation }) => {
      const appended = await request.append(generation, PRODUCER, 0, items(3));
      return { ...appended, mint: 0 };
    },
  },
  'append, when the window is full by then': {
    given: () => given.created({ window: 3 }),
    call: async ({ request, generation }) => {
      const appended = await request.append(generation, PRODUCER, 0, items(4));
      return { ...appended, mint: 0 };
    },
  },
  redrive: {
    given: async () => {
      const scene = await completeWithFailures([0, 1]);
      return { ...scene, generation: await scene.queue.intent(scene.id) };
    },
    call: (scene) => redriveOf(scene).open(scene.generation, REDRIVER, REDRIVE_LEASE_MS),
  },
  'redrive, of nothing': {
    given: async () => {
      const scene = await completeWithFailures([0, 1]);
      return { ...scene, generation: await scene.queue.intent(scene.id) };
    },
    call: (scene) => redriveOf(scene).open(scene.generation, REDRIVER, REDRIVE_LEASE_MS, [2]),
  },
  'run-again': {
    given: async () => openedAgain(await completeWithFailures([0, 1])),
    call: async (scene) => {
      const again = await redriveOf(scene).runAgain(scene.generation, REDRIVER, [0, 1]);
      // What the first call minted is counted; nothing is left for the second.
      return { ...again, mint: 0 };
    },
  },
  'renew-producer': {
    given: () => given.filled(),
    call: ({ request, generation }) => request.renewProducer(generation),
  },
  seal: {
    given: () => given.filled(),
    call: ({ request, generation }) => request.seal(generation, PRODUCER, 3),
  },
  'seal, of nothing': {
    given: () => given.created(),
    call: ({ request, generation }) => request.seal(generation, PRODUCER, 0),
  },
  enter: {
    given: () => given.filled({ items: 3, limit: 2 }),
    call: async (scene) => ({ ...(await new Hand(scene).enter(1)), mint: 0 }),
  },
  'enter, by a worker that does not serve the task': {
    given: () => given.filled({ task: 'census' }),
    call: (scene) => new Hand(scene).tryEnter(1, [1], ' tax ').then(({ verdict }) => verdict),
  },
  'settle, of a success': { given: held, call: settling((scene) => [success(first(scene))]) },
  'settle, of a failure that is tried again': {
    given: held,
    call: settling((scene) => [failure(first(scene))]),
  },
  'settle, of one that is given back': {
    given: held,
    call: settling((scene) => [back(first(scene))]),
  },
  'settle, of all kinds, leaving': {
    given: () => held(3),
    call: settling((scene) => [success(first(scene)), failure(second(scene), 9_000)], 0),
  },
  'settle, of the last': {
    given: async () => {
      const scene = await given.sealed({ items: 1 });
      await new Hand(scene).hold(1);
      return scene;
    },
    call: settling((scene) => [success(first(scene))], 0),
  },
  take: {
    given: async () => {
      const scene = await held();
      await settling(() => [failure(first(scene)), back(second(scene))])(scene);
      return scene;
    },
    call: ({ request, generation }) =>
      request.take(generation, 'worker', 9).then((taken) => typeof taken),
  },
  renew: {
    given: held,
    call: ({ request, generation }) => request.renew(generation, 'worker', LEASE_MS, [0, 5]),
  },
  'renew, without permits': {
    given: () => given.filled(),
    call: ({ request, generation }) => request.renew(generation, 'worker', LEASE_MS, []),
  },
  tend: {
    given: held,
    call: async ({ request, generation }) => ({
      ...(await request.tend(generation, '')),
      mint: 0,
      next: 0,
    }),
  },
  'tend, of a worker that crashed for the last time': {
    given: async () => {
      const scene = await given.filled({ items: 3, limit: 3, maxCrashes: 1 });
      await new Hand(scene, 'dead').hold(2);
      moveClock(LEASE_MS + 1);
      // The number of its enter ages with every tend.
      await scene.connection.client.hdel(scene.request.keys.request, 'op:dead');
      return scene;
    },
    call: ({ request, generation }) => request.tend(generation, '').then(({ verdict }) => verdict),
  },
  'run-alone': {
    given: held,
    call: (scene) => scene.request.runAlone(scene.generation, 'worker', 1, [first(scene).entry]),
  },
  cause: {
    given: held,
    call: ({ request, generation }) =>
      request.cause(generation, 'worker', { signal: 'SIGKILL' }, true),
  },
  'tend, of an intent that became nothing': {
    given: () => given.opened(),
    call: ({ request, generation }) => request.tend(generation, ''),
  },
  'tend, of a request that its producer left': {
    given: async () => {
      const scene = await given.filled({ producerLeaseMs: 1_000, onProducerLost: 'cancel' });
      moveClock(1_001);
      return scene;
    },
    call: ({ request, generation }) => request.tend(generation, ''),
  },
  cancel: {
    given: held,
    call: ({ request, generation }) => request.cancel(generation),
  },
  'cancel, of what nobody runs': {
    given: () => given.sealed(),
    call: ({ request, generation }) => request.cancel(generation),
  },
  drop: { given: held, call: ({ request }) => request.drop() },
  'unlink-spent': {
    given: async () => {
      const scene = await given.sealed({ items: 0 });
      await scene.connection.client.hset(scene.request.keys.request, 'spentAt', 1);
      return scene;
    },
    call: ({ request, generation }) => request.unlinkSpent(generation),
  },
  finish: {
    given: () => given.sealed({ items: 0 }),
    call: ({ queue, id, generation }) => queue.finish(id, generation, 'succeeded'),
  },
  'finish, of what was dropped after it ended': {
    given: async () => {
      const scene = await given.sealed({ items: 0 });
      await scene.queue.finish(scene.id, scene.generation, 'succeeded');
      return scene;
    },
    call: ({ queue, id, generation }) => queue.finish(id, generation, 'dropped'),
  },
  'schedule-tend': {
    given: () => given.created(),
    call: ({ queue, id, generation }) => queue.scheduleTend(id, generation, 5),
  },
  park: {
    given: () => given.created(),
    call: ({ queue, id, generation }) => queue.park(id, generation, 'census'),
  },
  reopen: {
    given: async () => {
      const scene = await given.filled();
      await scene.connection.client.hdel(scene.queue.keys.open, scene.id);
      return scene;
    },
    call: ({ queue, id, generation }) => queue.reopen(id, generation).then(() => 'either'),
  },
  deregister: {
    given: async () => {
      const scene = await given.created();
      await scene.queue.tick('worker', '{}');
      return scene;
    },
    call: ({ queue }) => queue.deregister('worker'),
  },
  'update, that pauses': {
    given: held,
    call: (scene) => control(scene).pause(scene.generation),
  },
  'update, that resumes': {
    given: async () => {
      const scene = await held();
      await control(scene).pause(scene.generation);
      return scene;
    },
    call: async (scene) => ({ ...(await control(scene).resume(scene.generation)), mint: 0 }),
  },
  'update, of all': {
    given: held,
    call: async (scene) => {
      const changes = { limit: 9, priority: 3, toleratedFailures: '2' };
      return { ...(await control(scene).update(scene.generation, changes)), mint: 0 };
    },
  },
  'pause-queue': {
    given: () => given.created(),
    call: (scene) =>
      queueControl(scene)
        .pause(0)
        .then(({ until }) => until),
  },
  'pause-queue, for a time': {
    given: () => given.created(),
    call: (scene) =>
      queueControl(scene)
        .pause(50_000)
        .then(() => 'from then on'),
  },
  'resume-queue': {
    given: async () => {
      const scene = await given.created();
      await queueControl(scene).pause(0);
      return scene;
    },
    call: (scene) =>
      queueControl(scene)
        .resume()
        .then(() => 'resumed'),
  },
  'should-yield': {
    given: () => given.filled(),
    call: ({ queue }) => queue.shouldYield('another', 50),
  },
  hold: {
    given: held,
    call: (scene) =>
      holds(scene)
        .hold(scene.generation, 9_000)
        .then(({ verdict }) => verdict),
  },
  follow: {
    given: held,
    call: ({ connection, id, generation }) =>
      new ReaderCommands(connection, id).follow(generation).then(({ verdict }) => verdict),
  },
  'read-results': {
    given: () => given.sealed({ items: 0 }),
    call: ({ request }) => request.results('-', 9),
  },
  'read-series': {
    given: () => given.created(),
    call: ({ queue }) => queue.series(9).then(({ intervals }) => intervals),
  },
  inspect: {
    given: held,
    call: ({ request }) => request.inspect().then((picture) => picture?.ready),
  },
};

describe('run twice, a script leaves the state of one run', () => {
  for (const [name, one] of Object.entries(same)) {
    it(name, async () => {
      const { first: answer, second: repeat, once, again } = await twice(one);
      expect(again).toEqual(once);
      // A repeat of enter does not know what its first reply brought.
      expect(repeat).toEqual(name === 'enter' ? { ...(answer as object), ready: -1 } : answer);
    });
  }

  it('tick: what it claimed is not claimed again', async () => {
    const scene = await passed();
    expect((await scene.queue.tick('worker', '{}')).claims).toHaveLength(1);
    const once = await snapshot(scene);
    expect((await scene.queue.tick('worker', '{}')).claims).toHaveLength(0);
    expect(await snapshot(scene)).toEqual(once);
  });

  it('write-back: it pushes again, and the surplus token dies at enter', async () => {
    const scene = await passed();
    await popAll(scene);
    const [claim] = (await scene.queue.tick('', '')).claims;
    const tended = { mint: 1, epoch: 1, priority: 50, before: '', next: 0, parked: '' };
    expect(await scene.queue.writeBack(claim!, tended)).toBeTypeOf('number');
    const once = await inspectQueue(scene);
    expect(await scene.queue.writeBack(claim!, tended)).toBe('moved');
    const again = await inspectQueue(scene);
    expect({ ...again, lists: {}, pushed: {} }).toEqual({ ...once, lists: {}, pushed: {} });
    expect(await popAll(scene)).toHaveLength(2);
  });

  it('push and exchange: they push again, and each token is counted once', async () => {
    const scene = await given.filled({ items: 3, limit: 1 });
    const { id, generation, queue } = scene;
    const minted = { id, generation, mint: 1, epoch: 1, priority: 50 };
    await queue.push(minted);
    expect(await queue.exchange(minted, 1)).toHaveLength(1);
    expect((await inspectQueue(scene)).pushed).toEqual({ 50: 3 });
    const permits: number[] = [];
    for (const name of ['a', 'b', 'c'])
      permits.push((await new Hand(scene, name).enter(1)).permits);
    expect(permits).toEqual([1, 0, 0]);
    expect((await inspect(scene)).out).toBe(0);
  });

  it('is said of every script', () => {
    const tested = Object.keys(same).map((name) => name.split(',')[0]);
    // Queues beside requests number their calls: lua/timed, lua/id-queue, and the repeat law of both.
    const ofRequests = scriptNames.filter((name) => !/^(id|timed)-/.test(name));
    expect(new Set([...tested, 'tick', 'write-back', 'push', 'exchange'])).toEqual(
      new Set(ofRequests),
    );
  });
});
