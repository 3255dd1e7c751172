import { moveClock } from '../../support/clock.js';
import { givenIds, type IdScene, INCARNATION, TIMEOUT_MS } from '../../support/given-ids.js';

/* States that a queue of ids gets into, each by its scripts alone, and calls of every script of it. */

/** Three tasks in hands, of four. */
async function inHands(unique: boolean): Promise<IdScene> {
  const scene = await givenIds(['a', 'b', 'c', 'd'], { unique });
  for (let i = 0; i < 3; i += 1) await scene.take();
  return scene;
}

export const idStates: Record<string, () => Promise<IdScene>> = {
  empty: () => givenIds(),
  pending: () => givenIds(['a', 'b']),
  'in hands': () => inHands(false),
  'in hands, unique': () => inHands(true),
  'run out': async () => {
    const scene = await inHands(true);
    moveClock(TIMEOUT_MS);
    return scene;
  },
  'long run out': async () => {
    const scene = await inHands(false);
    moveClock(3 * TIMEOUT_MS);
    return scene;
  },
  resumed: async () => {
    const scene = await inHands(true);
    moveClock(TIMEOUT_MS);
    await scene.resume({ number: 1, attempt: 1 });
    return scene;
  },
  'failed and done': async () => {
    const scene = await inHands(false);
    await scene.fail({ number: 1, attempt: 1 });
    await scene.done({ number: 2, attempt: 1 });
    return scene;
  },
  dropped: async () => {
    const scene = await inHands(true);
    await scene.drop();
    return scene;
  },
};

const first = { number: 1, attempt: 1 };
const again = { number: 1, attempt: 2 };

export const idCalls: Record<string, (scene: IdScene) => Promise<unknown>> = {
  'id-join: what is there': ({ commands }) => commands.join(INCARNATION, {}, TIMEOUT_MS),
  'id-join: with other options': ({ commands }) =>
    commands.join('later', { timeoutMs: 3, unique: true }, TIMEOUT_MS),
  'id-add: a new chunk': (scene) => scene.add(['x', 'a', 'x'], 9),
  'id-add: an old chunk': (scene) => scene.add(['x'], 1),
  'id-add: of another sender': (scene) => scene.add(['x'], 1, 'another'),
  'id-pull': (scene) => scene.pull(),
  'id-resume: the first attempt': (scene) => scene.resume(first),
  'id-resume: the second attempt': (scene) => scene.resume(again),
  'id-settle: done': (scene) => scene.done(first),
  'id-settle: failed': (scene) => scene.fail(first),
  'id-settle: done, the second attempt': (scene) => scene.done(again),
  'id-settle: failed, the second attempt': (scene) => scene.fail(again),
  'id-inspect': (scene) => scene.inspect(0, 9),
  'id-drop': (scene) => scene.drop(),
};
