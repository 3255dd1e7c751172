/*
 * Every cure that can be switched off, and what notices. `npm run test:mutants` goes through the list.
 *
 * A cure is anchored by a comment `cure: <name>` at its place; scripts/anchors.mjs says what can become of what
 * follows. Cures in Lua are switched off inside a test, which plays the same history with and without them: `history`
 * is its name in `test`, and the history lists the anchors. Of those in TypeScript the built code is changed in a copy
 * of the packages, and the test named has to fail.
 */
import { codeClients } from './code-clients.mjs';
import { codeCommandLine } from './code-command-line.mjs';
import { codeProtocol } from './code-protocol.mjs';
import { codeWorker } from './code-worker.mjs';
import { luaBoundsAndClocks } from './lua-bounds-and-clocks.mjs';
import { luaControlAndLosses } from './lua-control-and-losses.mjs';
import { luaHistories } from './lua-histories.mjs';
import { luaUsualSettle } from './lua-usual-settle.mjs';

export const luaCures = [
  ...luaBoundsAndClocks,
  ...luaControlAndLosses,
  ...luaHistories,
  ...luaUsualSettle,
];

/** Tests that switch off a flag: one for each script, all of which have to pass. */
export const flagCure = {
  cure: 'allow-oom on draining scripts',
  test: 'test/lua/memory.test.ts',
  names: /^needs allow-oom in /,
};

export const codeCures = [...codeClients, ...codeCommandLine, ...codeProtocol, ...codeWorker];
