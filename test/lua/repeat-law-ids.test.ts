import { describe, expect, it } from 'vitest';
import { scriptNames } from '../../scripts/lua-source.mjs';
import { useTestClock } from '../support/clock.js';
import { type IdPicture, type IdScene, idFaultsOf } from '../support/given-ids.js';
import { keysOf } from '../support/leaks.js';
import { idCalls, idStates } from './repeat-law/ids.js';

/* The repeat law (repeat-law.test.ts) for the scripts of a queue of ids. */

useTestClock();

async function remove({ connection, commands }: IdScene): Promise<void> {
  for (const key of await keysOf(connection.client, commands.keys.name))
    await connection.client.unlink(key);
}

describe('run twice, every script of a queue of ids leaves the state of one run', () => {
  // A pull that is sent again hands out, or offers, another: what the first took runs out.
  const repeatable = Object.entries(idCalls).filter(([name]) => !name.startsWith('id-pull'));

  it('from every state', async () => {
    const ofIds = scriptNames.filter((script) => /^id-/.test(script) && script !== 'id-pull');
    const called = repeatable.map(([name]) => name.split(':')[0]);
    expect(new Set(called)).toEqual(new Set(ofIds));
    for (const [state, make] of Object.entries(idStates)) {
      for (const [name, send] of repeatable) {
        const scene = await make();
        await send(scene);
        const once = await scene.picture();
        await send(scene);
        const said = `${name} from ${state}`;
        expect(await scene.picture(), said).toEqual(once);
        expect(idFaultsOf(once), said).toEqual([]);
        await remove(scene);
      }
    }
  });

  it('but for a pull, which hands out one more and loses none', async () => {
    for (const [state, make] of Object.entries(idStates)) {
      const scene = await make();
      const before = await scene.picture();
      await scene.pull();
      await scene.pull();
      const after = await scene.picture();
      expect(idFaultsOf(after), state).toEqual([]);
      expect(idsIn(after), state).toEqual(idsIn(before));
      await remove(scene);
    }
  });
});

const idsIn = ({ pending, tasks }: IdPicture) =>
  [...pending, ...Object.values(tasks).map((task) => task.replace(/^\d+:\d+:/, ''))].sort();
