import { fill } from '../../cast/roles/submitted.js';
import {
  back,
  failure,
  given,
  Hand,
  type Options,
  PRODUCER,
  type Scene,
} from '../../support/given.js';
import { payloads, type Stage } from './stage.js';

/*
 * A worker whose n-th call goes wrong. It goes on by itself, with nobody to help it but the agenda;
 * only when its process ended, another takes over.
 */

const ITEMS = 6;
const COUNTS = { succeeded: ITEMS - 1, failed: 1 };

/** Sealed, and its tokens out; what `before` does to it a worker did that has left. */
async function request(
  stage: Stage,
  name: string,
  options: Options,
  before: (hand: Hand) => Promise<number> = async () => 0,
): Promise<Scene> {
  const id = stage.id(name);
  const scene = await given.created({ ...options, id, queue: stage.queue });
  await fill(scene, payloads(ITEMS));
  await scene.request.seal(scene.generation, PRODUCER, ITEMS);
  const mint = await before(new Hand(scene, 'before'));
  const { generation } = scene;
  const due = options.expedite ? (options.runAt ?? 0) : 0;
  await scene.queue.push({ id, generation, mint, epoch: 1, priority: 50, due });
  return scene;
}

/** Two requests take turns; of one some came back unstarted, of the other one is to be tried again. */
async function twoRequests(stage: Stage): Promise<string[]> {
  const options = { limit: 2, priority: 50 };
  const a = await request(stage, 'a', options, async (hand) => {
    const entries = await hand.hold(2);
    return (await hand.settle(entries.map(back), { keep: 0 })).mint;
  });
  const b = await request(stage, 'b', { ...options, attempts: 2 }, async (hand) => {
    const [first] = await hand.hold(1);
    return (await hand.settle([failure(first!, 9_000)], { keep: 0 })).mint;
  });
  await stage.replaced((how) => stage.worker(how, how === 'faulty' ? { quantumMs: 0 } : {}));
  await stage.heal(Promise.resolve());
  return [
    ...(await stage.judge(a.id, { counts: COUNTS })),
    ...(await stage.judge(b.id, { counts: COUNTS })),
  ];
}

/** Both were delayed and go first; the one that is due later came first. Beside them one that was not. */
async function expedited(stage: Stage): Promise<string[]> {
  const options = { limit: 2, expedite: true };
  const ids: string[] = [];
  for (const [name, more] of Object.entries({
    plain: { limit: 2 },
    later: { ...options, runAt: 7 },
    first: { ...options, runAt: 5 },
  })) {
    const { id } = await request(stage, name, more, async (hand) => {
      const entries = await hand.hold(2);
      return (await hand.settle(entries.map(back), { keep: 0 })).mint;
    });
    ids.push(id);
  }
  await stage.replaced((how) => stage.worker(how, how === 'faulty' ? { quantumMs: 0 } : {}));
  await stage.heal(Promise.resolve());
  const wrong = await Promise.all(ids.map((id) => stage.judge(id, { counts: COUNTS })));
  return wrong.flat();
}

/** It serves another task than the one that is asked for, until somebody comes who serves that. */
async function anotherTask(stage: Stage): Promise<string[]> {
  const serving = (task: string) => ({ handlers: [{ task, run: stage.handler as never }] });
  const { id } = await request(stage, 'census', { limit: 2, task: 'census' });
  await stage.start((how) => stage.worker(how, serving('tax')));
  let came = false;
  await stage.heal(Promise.resolve(), async () => {
    if (came) return;
    came = true;
    await (await stage.worker('well', serving('census'))).start();
  });
  return stage.judge(id, { counts: COUNTS });
}

export const workers = {
  'worker of two requests': twoRequests,
  'worker of expedited requests': expedited,
  'worker of another task': anotherTask,
};
