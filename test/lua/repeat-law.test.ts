import pMap from 'p-map';
import { describe, expect, it } from 'vitest';
import { type ScriptName, scriptNames } from '../../scripts/lua-source.mjs';
import { useTestClock, withOwnClock } from '../support/clock.js';
import type { Scene } from '../support/given.js';
import { keysLeft } from '../support/leaks.js';
import { faultsOf, peek, snapshot } from '../support/peek.js';
import { againstCluster } from '../support/redis.js';
import { type Call, callsFor } from './repeat-law/calls.js';
import { states } from './repeat-law/states.js';

/*
 * The repeat law: from every seeded state every script, called twice with the same arguments, leaves
 * the state of one call, and the books are in order. What a repeat may change all the same stands
 * below, by script, and nothing else may. repeat.test.ts says what the replies are.
 */

useTestClock();

type State = Record<string, string>;

const without = (state: State, what: RegExp): State =>
  Object.fromEntries(Object.entries(state).filter(([key]) => !what.test(key)));

/** The tokens of a list and how many were ever pushed to it: a surplus dies at enter. */
const noLists = (state: State) => without(state, /:(pushed|\d+|\d+:due)$/);

/** A repeated tend turns the epoch of what the first one minted, and forgets an old op number. */
function turned(state: State): State {
  const entries = Object.entries(state).map(([key, value]): [string, string] => {
    if (!key.startsWith('request:')) return [key, value];
    const [type, ttl, fields] = JSON.parse(value) as [string, string, [string, string][]];
    const number = (name: string) => Number(fields.find(([field]) => field === name)?.[1] ?? 0);
    const kept = fields.filter(([field]) => !/^(op:.*|epoch|out|outBefore)$/.test(field));
    return [key, JSON.stringify([type, ttl, kept, number('out') + number('outBefore')])];
  });
  return Object.fromEntries(entries);
}

const exceptions: Partial<Record<ScriptName, (state: State) => State>> = {
  push: noLists,
  exchange: noLists,
  'write-back': noLists,
  tend: turned,
};

async function remove(scene: Scene): Promise<void> {
  for (const key of await keysLeft(scene)) await scene.connection.client.unlink(key);
}

/** What is wrong with a call from a state; nothing, when the law holds. */
function broken(make: () => Promise<Scene>, which: number): Promise<string | undefined> {
  return withOwnClock(async () => {
    const scene = await make();
    const call = (await callsFor(scene))[which] as Call;
    const said = `${call.script} ${call.name}`;
    const normal = exceptions[call.script] ?? ((state: State) => state);
    try {
      await call.send(scene);
      const once = normal(await snapshot(scene));
      await call.send(scene);
      const again = normal(await snapshot(scene));
      // A lowered limit takes nothing away from those that run.
      const mayExceed = call.script === 'update';
      const faults = faultsOf(await peek(scene)).filter(
        (fault) => !(mayExceed && fault === 'granted above the limit'),
      );
      if (faults.length > 0) return `${said}: ${faults.join('; ')}`;
      for (const key of new Set([...Object.keys(once), ...Object.keys(again)])) {
        if (once[key] !== again[key]) return `${said}: ${key}\n  ${once[key]}\n  ${again[key]}`;
      }
      return undefined;
    } finally {
      await remove(scene);
    }
  });
}

/** How many calls there are from a state, and which scripts are among them. */
async function callsOf(make: () => Promise<Scene>): Promise<readonly Call[]> {
  const scene = await withOwnClock(make);
  const calls = await callsFor(scene);
  await remove(scene);
  return calls;
}

/** Scripts with keys of both sides. */
const ONE_SERVER = new Set<string>(['submit']);

describe('run twice, every script leaves the state of one run', () => {
  for (const [name, make] of Object.entries(states)) {
    it(`from: ${name}`, async () => {
      const calls = await callsOf(make);
      const ofRequests = scriptNames.filter(
        (script) => !script.startsWith('id-') && !(againstCluster && ONE_SERVER.has(script)),
      );
      expect(new Set(calls.map(({ script }) => script))).toEqual(new Set(ofRequests));
      const found = await pMap(calls.keys(), (which) => broken(make, which), { concurrency: 8 });
      const wrong = found.filter((what) => what !== undefined);
      expect(wrong).toEqual([]);
    });
  }
});
