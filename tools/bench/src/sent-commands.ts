import { Socket } from 'node:net';
import { monotonicMs } from './monotonic.js';
import { type Found, foundIn } from './written-commands.js';

/*
 * Counts the commands that this process sends, whatever the client library. The server's counters cannot tell, as they
 * include the commands that scripts call. Payloads of ASCII are skipped: contenders that write texts and those that write
 * bytes do not pay for their lengths.
 */

/** The times of this many last scripts are remembered. */
const REMEMBERED = 64;

let commands = 0;
let writes = 0;
const scriptsAtMs: number[] = [];

export interface Sent {
  readonly commands: number;
  /** Number of socket writes with commands: an upper bound of the round trips. */
  readonly writes: number;
}

export function countSentCommands(): void {
  const write = Socket.prototype.write as (...args: unknown[]) => boolean;
  Socket.prototype.write = function counted(this: Socket, ...args: unknown[]): boolean {
    note(foundIn(args[0] as string | Uint8Array));
    return write.apply(this, args);
  } as typeof Socket.prototype.write;
}

function note(found: Found): void {
  commands += found.commands;
  if (found.commands > 0) writes += 1;
  if (found.scripts > 0) scriptsAtMs.push(monotonicMs());
  if (scriptsAtMs.length > REMEMBERED) scriptsAtMs.shift();
}

export function sent(): Sent {
  return { commands, writes };
}

/** When the first script after that time was written, of the last few. */
export function firstScriptAfter(ms: number): number | undefined {
  return scriptsAtMs.find((atMs) => atMs >= ms);
}
