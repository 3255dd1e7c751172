import type { Argument } from '../client.js';
import { Command, type Redis } from '../ioredis.js';
import { asFlat } from './flat-arguments.js';

/*
 * After a reconnect ioredis resends what had no answer, and sends what was asked of it meanwhile. The server may now
 * be one that lost its last writes. A call that is right only for a server that has those writes must not reach it.
 * This relies on ioredis calling `toWritable` each time that it writes a command.
 */

/** Sent instead of the command on a later connection. The server answers it with one reply, as it would the command. */
const PING = '*1\r\n$4\r\nPING\r\n';

/** A command that is written once; every later write sends a PING in its place. */
class OnceCommand extends Command {
  written = false;
  replaced = false;

  override toWritable(socket: object): string | Buffer {
    // cure: a call that follows from a reply uses the connection of that reply
    if (this.written) {
      this.replaced = true;
      return PING;
    }
    this.written = true;
    return super.toWritable(socket);
  }
}

/**
 * Sends a command over the current connection, never over a later one.
 * @returns its reply; undefined when that connection gave none: the server may have carried it out or not
 */
export async function sendOnce(
  client: Redis,
  name: string,
  args: readonly Argument[],
): Promise<unknown> {
  const command = new OnceCommand(name, asFlat([...args]), { replyEncoding: 'utf8' });
  const reply = client.sendCommand(command) as Promise<unknown>;
  // A command that was not written at once waits for the next connection, where it must not be sent.
  command.written = true;
  try {
    const answer = await reply;
    return command.replaced ? undefined : answer;
  } catch (error) {
    if (command.replaced) return undefined;
    throw error;
  }
}
