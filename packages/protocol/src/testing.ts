/**
 * For Piecework's own tests and for `@piecework/testing`: runs a build of the scripts whose clock can be moved, so that
 * nothing has to sleep until a lease ends.
 */

import { ControlCommands } from './calls/request/control-commands.js';
import { ProducerCommands } from './calls/request/producer-commands.js';
import { RequestReads } from './calls/request/request-reads.js';
import { TendCommands } from './calls/request/tend-commands.js';
import { WorkerCommands } from './calls/request/worker-commands.js';
import { moveServerTime } from './contract/server-time.js';
import type { Argument } from './redis/client.js';
import { useBuild } from './scripts/run-script.js';
import { scripts as released, type ScriptName } from './scripts/scripts.generated.js';

export { entriesIn } from './calls/request/outcome-codec.js';
export { run } from './scripts/run-script.js';
export { scripts as releasedScripts } from './scripts/scripts.generated.js';
export { KnownTimes } from './upkeep/known-times.js';

let offset: number | (() => number) = 0;

/** Runs `scripts` (the test build of lua/) in this process from here on. */
export function installTestClock(
  scripts: Readonly<Record<ScriptName, { readonly sha: string; readonly lua: string }>>,
): void {
  useBuild({ scripts, clock: () => [offsetMs()] });
  moveServerTime(() => Number(offsetMs()));
}

/** Runs the scripts as they are released again. */
export function removeTestClock(): void {
  useBuild({ scripts: released, clock: () => [] });
  moveServerTime(() => 0);
}

/** Moves the scripts' clock of this process ahead of the server's by so many ms, absolute. Returns the offset before. */
export function setClockOffset(ms: number | (() => number)): number | (() => number) {
  const before = offset;
  offset = ms;
  return before;
}

const offsetMs = (): Argument => (typeof offset === 'number' ? offset : offset());

/** All that the roles do to one request, in one object: a test plays each of them. */
export interface RequestCommands
  extends ProducerCommands,
    WorkerCommands,
    TendCommands,
    ControlCommands {}
export class RequestCommands extends RequestReads {}

for (const { prototype } of [ProducerCommands, WorkerCommands, TendCommands, ControlCommands]) {
  const { constructor: _, ...methods } = Object.getOwnPropertyDescriptors(prototype);
  Object.defineProperties(RequestCommands.prototype, methods);
}
