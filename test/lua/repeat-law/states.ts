import { ControlCommands, QueueControlCommands } from '@piecework/protocol';
import { moveClock } from '../../support/clock.js';
import { settleAll } from '../../support/compact.js';
import {
  append,
  back,
  create,
  failure,
  given,
  Hand,
  holds,
  LEASE_MS,
  type Options,
  PRODUCER,
  popAll,
  type Scene,
  success,
} from '../../support/given.js';
import { againstCluster } from '../../support/redis.js';
import { completeWithFailures, openedAgain, runAgain } from '../../support/redriven.js';
import { compact } from '../../support/whole.js';
import { timedSet } from './timed.js';

/*
 * States that a request and its queue get into, each by the scripts alone (but for a flag that
 * one sets only after thousands of sub-requests). 'worker' is who holds, if anybody does.
 */

const FOUR: Options = { items: 4, attempts: 2, limit: 4 };

/** Sealed; a worker holds two of four. */
async function held(options: Options = {}) {
  const scene = await given.sealed({ ...FOUR, ...options });
  const hand = new Hand(scene);
  const [first, second] = await hand.hold(2);
  return { scene, hand, first: first!, second: second! };
}

/** The flag of a request that is set by hand. */
async function flagged(scene: Scene, field: string): Promise<Scene> {
  await scene.connection.client.hset(scene.request.keys.request, field, 1);
  return scene;
}

async function complete(): Promise<Scene> {
  const scene = await given.sealed({ items: 2, limit: 2 });
  const hand = new Hand(scene);
  const [first, second] = await hand.hold(2);
  await hand.trySettle([success(first!), failure(second!)]);
  return scene;
}

async function dropped(scene: Scene): Promise<Scene> {
  await scene.request.drop();
  return scene;
}

/** In a cluster no request is compact. */
const compactStates: Record<string, () => Promise<Scene>> = againstCluster
  ? {}
  : {
      compact: () => compact({ attempts: 2 }),
      'compact, its token looked for': async () => {
        const scene = await compact();
        await scene.request.tend(scene.generation, '');
        return scene;
      },
      'compact, and held': compactAndHeld,
      'compact, and held by a dead worker': async () => {
        const scene = await compactAndHeld();
        moveClock(LEASE_MS + 1);
        return scene;
      },
      'compact, complete, not finished': async () => {
        const scene = await compactAndHeld();
        await settleAll(scene);
        return scene;
      },
      'compact, complete and finished': async () => {
        const scene = await compactAndHeld();
        await settleAll(scene);
        await scene.queue.finish(scene.id, scene.generation, 'succeeded');
        return scene;
      },
    };

async function compactAndHeld(): Promise<Scene> {
  const scene = await compact({ attempts: 2 });
  await new Hand(scene).holdAtOnce(3);
  return scene;
}

export const states: Record<string, () => Promise<Scene>> = {
  ...compactStates,
  opened: () => given.opened(),
  'opened, beside a timed set of that name': timedSet,
  created: () => given.created(),
  'created, with a window': () => given.created({ window: 2 }),
  filled: () => given.filled({ items: 3, limit: 2 }),
  'filled, the producer lost': async () => {
    const scene = await given.filled({ producerLeaseMs: 1_000, onProducerLost: 'cancel' });
    moveClock(1_001);
    return scene;
  },
  sealed: () => given.sealed(FOUR),
  'sealed, its tokens eaten': async () => {
    const scene = await given.sealed(FOUR);
    await popAll(scene);
    moveClock(21_000);
    return scene;
  },
  'of a task that somebody does not serve': async () => {
    const scene = await given.sealed({ ...FOUR, task: 'census' });
    await new Hand(scene, 'worker').tryEnter(1, [1], ' tax ');
    await scene.queue.park(scene.id, scene.generation, 'census');
    return scene;
  },
  held: async () => (await held()).scene,
  'settled in part': async () => {
    const { scene, hand, first } = await held();
    await hand.settle([success(first)]);
    return scene;
  },
  'parked, ready': async () => {
    const { scene, hand, first } = await held();
    await hand.settle([back(first)]);
    return scene;
  },
  'parked, delayed': async () => {
    const { scene, hand, first } = await held();
    await hand.settle([failure(first, 9_000)]);
    return scene;
  },
  'failed for good': async () => {
    const { scene, hand, first } = await held({ attempts: 1 });
    await hand.settle([failure(first)]);
    return scene;
  },
  'left by its worker': async () => {
    const { scene, hand, first, second } = await held();
    await hand.settle([success(first), back(second)], { keep: 0 });
    return scene;
  },
  'read without a permit': async () => {
    const { scene, hand } = await held();
    await hand.settle([], { keep: 0 });
    await hand.read(1);
    return scene;
  },
  'held, the lease ended': async () => {
    const { scene } = await held();
    moveClock(31_000);
    return scene;
  },
  'held, tokens out in two epochs': async () => {
    const scene = await given.sealed({ items: 8, limit: 8 });
    const hand = new Hand(scene);
    await hand.hold(2);
    await scene.request.tend(scene.generation, '');
    await hand.enter(1, []);
    return scene;
  },
  'held, progress reported': async () => {
    const { scene } = await held();
    await scene.request.renew(scene.generation, 'worker', 30_000, [0, 5]);
    return scene;
  },
  'held, checkpoints kept': async () => {
    const { scene } = await held();
    const reports = ['0:checkpoint', '1', '1:checkpoint', '{}'];
    await scene.request.renew(scene.generation, 'worker', 30_000, reports);
    return scene;
  },
  'held, pinned': async () => flagged((await held()).scene, 'pinned'),
  'held back': async () => {
    const { scene } = await held();
    await holds(scene).hold(scene.generation, 9_000);
    return scene;
  },
  'delayed, with a deadline': () => given.sealed({ ...FOUR, delayMs: 9_000, deadlineMs: 60_000 }),
  'due, and expedited': () => given.sealed({ ...FOUR, runAt: 5, expedite: true }),
  'held, expedited, its tokens out in two epochs': async () => {
    const scene = await given.sealed({ items: 8, limit: 8, runAt: 5, expedite: true });
    await new Hand(scene).hold(2);
    await scene.request.tend(scene.generation, '');
    return scene;
  },
  'held, past its deadline': async () => {
    const { scene } = await held({ deadlineMs: 9_000 });
    moveClock(9_001);
    return scene;
  },
  'held, paused': async () => {
    const { scene } = await held();
    await new ControlCommands(scene.connection, scene.id).pause(scene.generation);
    return scene;
  },
  'held, of another priority since, the old tokens out': async () => {
    const { scene } = await held({ items: 8, limit: 8 });
    await scene.request.tend(scene.generation, '');
    await new ControlCommands(scene.connection, scene.id).update(scene.generation, { priority: 9 });
    return scene;
  },
  'sealed, its queue paused': async () => {
    const scene = await given.sealed(FOUR);
    await new QueueControlCommands(scene.connection, scene.queue.keys.queue).pause(0);
    return scene;
  },
  cancelling: async () => {
    const { scene, hand, second } = await held();
    await hand.settle([failure(second, 9_000)]);
    await scene.request.cancel(scene.generation);
    return scene;
  },
  'complete, not finished': () => complete(),
  'complete and finished': async () => {
    const scene = await complete();
    await scene.queue.finish(scene.id, scene.generation, 'failed');
    return scene;
  },
  'complete, and keeps much': async () => {
    const scene = await complete();
    await scene.connection.client.hset(scene.request.keys.request, 'spentAt', 1);
    return scene;
  },
  'complete, a short retention over': async () => {
    const scene = await given.sealed({ items: 0, retentionMs: 1 });
    await scene.connection.client.del(scene.request.keys.request);
    return scene;
  },
  'dropped, the next one opened': async () => {
    const first = await complete();
    await first.queue.finish(first.id, first.generation, 'failed');
    const generation = await first.queue.intent(first.id);
    await first.request.drop(first.generation);
    return { ...first, generation };
  },
  'dropped, not finished': async () => dropped((await held()).scene),
  void: async () => {
    const scene = await given.opened();
    await scene.request.tend(scene.generation, '');
    return scene;
  },
  'a second life, the first remembered': async () => {
    const first = await given.sealed({ items: 0 });
    await first.queue.finish(first.id, first.generation, 'succeeded');
    // Its retention ends.
    await first.connection.client.del(first.request.keys.request);
    const scene = { ...first, generation: await first.queue.intent(first.id) };
    await create(scene, FOUR);
    await append(scene, 4);
    await scene.request.seal(scene.generation, PRODUCER, 4);
    return scene;
  },
  'a redrive, nothing moved': async () => openedAgain(await completeWithFailures([0, 1])),
  'a redrive, one moved': async () => {
    const scene = await openedAgain(await completeWithFailures([0, 1]));
    await runAgain(scene, [0]);
    return scene;
  },
  'a redrive, sealed, held': async () => {
    const scene = await openedAgain(await completeWithFailures([0, 1]));
    await runAgain(scene, [0, 1]);
    await scene.request.seal(scene.generation, PRODUCER, 4);
    await new Hand(scene).hold(1);
    return scene;
  },
};
