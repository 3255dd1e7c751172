import { Socket } from 'node:net';
import { monotonicMs } from './monotonic.js';

/**
 * Counts the commands that this process sends, whatever the client library: the server counts those
 * that scripts call together with them, and so cannot tell. Every command begins with
 * `*<length>\r\n$`, and no payload contains that. The look costs every contender the same per byte.
 */
const COMMAND = /\*\d+\r\n\$/g;
const SCRIPT = /\r\nevalsha\r\n/i;
/** How many of the last scripts are remembered. */
const REMEMBERED = 64;

let commands = 0;
let writes = 0;
const scriptsAtMs: number[] = [];

export interface Sent {
  readonly commands: number;
  /** Writes to sockets with commands in them: round trips, at most. */
  readonly writes: number;
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
    if (SCRIPT.test(text)) scriptsAtMs.push(monotonicMs());
    if (scriptsAtMs.length > REMEMBERED) scriptsAtMs.shift();
    return write.apply(this, args);
  } as typeof Socket.prototype.write;
}

export function sent(): Sent {
  return { commands, writes };
}

/** When the first script after that time was written, of the last few. */
export function firstScriptAfter(ms: number): number | undefined {
  return scriptsAtMs.find((atMs) => atMs >= ms);
}
