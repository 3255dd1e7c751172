import { Socket } from 'node:net';
import { monotonicMs } from './monotonic.js';

/**
 * Counts the commands that this process sends, whatever the client library. The server's counters cannot tell, as they
 * include the commands that scripts call. Every command begins with `*<length>\r\n$`, and no payload contains that. The
 * scan costs every contender the same per byte.
 */
const COMMAND = /\*\d+\r\n\$/g;
const SCRIPT = /\r\nevalsha\r\n/i;
/** The number of keys of a script, and of a pop from many lists. */
const KEYS = /\r\n(?:evalsha\r\n\$40\r\n\w+|blmpop\r\n\$\d+\r\n[\d.]+)\r\n\$\d+\r\n(\d+)\r\n/gi;
/** The times of this many last scripts are remembered. */
const REMEMBERED = 64;

let commands = 0;
let writes = 0;
let keys = 0;
const scriptsAtMs: number[] = [];

export interface Sent {
  readonly commands: number;
  /** Number of socket writes with commands: an upper bound of the round trips. */
  readonly writes: number;
  /** Keys named by scripts and by pops from many lists. */
  readonly keys: number;
}

export function countSentCommands(): void {
  const write = Socket.prototype.write as (...args: unknown[]) => boolean;
  Socket.prototype.write = function counted(this: Socket, ...args: unknown[]): boolean {
    const [chunk] = args;
    const text =
      typeof chunk === 'string' ? chunk : Buffer.from(chunk as Buffer).toString('latin1');
    const found = text.match(COMMAND)?.length ?? 0;
    commands += found;
    if (found > 0) writes += 1;
    for (const [, count] of text.matchAll(KEYS)) keys += Number(count);
    if (SCRIPT.test(text)) scriptsAtMs.push(monotonicMs());
    if (scriptsAtMs.length > REMEMBERED) scriptsAtMs.shift();
    return write.apply(this, args);
  } as typeof Socket.prototype.write;
}

export function sent(): Sent {
  return { commands, writes, keys };
}

/** When the first script after that time was written, of the last few. */
export function firstScriptAfter(ms: number): number | undefined {
  return scriptsAtMs.find((atMs) => atMs >= ms);
}
