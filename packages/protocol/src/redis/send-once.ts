import { Command, type Redis } from 'ioredis';
import type { Argument } from './client.js';

/*
 * ioredis sends what it got no answer to again behind a new connection, and what was asked of it in between.
 * The server there may be one that lost its last writes. A call that is right only for a server that has them
 * must not reach that one by itself.
 */

/** What is sent instead: a new connection answers it as it would the command. */
const PING = '*1\r\n$4\r\nPING\r\n';

/** Is written once, as itself. ioredis asks for what it is to write each time that it writes. */
class OnceCommand extends Command {
  over = false;
  replaced = false;

  override toWritable(socket: object): string | Buffer {
    if (this.over) {
      this.replaced = true;
      return PING;
    }
    this.over = true;
    return super.toWritable(socket);
  }
}

/**
 * Sends a command over the connection that stands now, and over no later one.
 * @returns its reply; undefined when that connection gave none: it may have been carried out or not
 */
export async function sendOnce(
  client: Redis,
  name: string,
  args: readonly Argument[],
): Promise<unknown> {
  const command = new OnceCommand(name, [...args], { replyEncoding: 'utf8' });
  const reply = client.sendCommand(command) as Promise<unknown>;
  // What was not written at once waits for the next connection.
  command.over = true;
  try {
    const answer = await reply;
    return command.replaced ? undefined : answer;
  } catch (error) {
    if (command.replaced) return undefined;
    throw error;
  }
}
