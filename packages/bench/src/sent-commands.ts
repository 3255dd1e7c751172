import { Socket } from 'node:net';

/**
 * Counts the commands that this process sends, whatever the client library: the server counts those
 * that scripts call together with them, and so cannot tell. Every command begins with
 * `*<length>\r\n$`, and no payload contains that. The look costs every contender the same per byte.
 */
const COMMAND = /\*\d+\r\n\$/g;
let sent = 0;

export function countSentCommands(): void {
  const write = Socket.prototype.write as (...args: unknown[]) => boolean;
  Socket.prototype.write = function counted(this: Socket, ...args: unknown[]): boolean {
    const [chunk] = args;
    const text =
      typeof chunk === 'string' ? chunk : Buffer.from(chunk as Buffer).toString('latin1');
    sent += text.match(COMMAND)?.length ?? 0;
    return write.apply(this, args);
  } as typeof Socket.prototype.write;
}

export function sentCommands(): number {
  return sent;
}
