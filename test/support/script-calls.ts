import type { Connection } from '@piecework/protocol';
import { Command } from 'ioredis';

type Client = Connection['client'];

/**
 * From now on `carryOut` decides what becomes of each script that is called by its digest, outside of pipelines: it is
 * given the arguments of the call, as text, and what sends it, once or more often. Answers how to end that.
 */
export function interceptScripts(
  client: Client,
  carryOut: (args: readonly string[], send: () => Promise<unknown>) => Promise<unknown>,
): () => void {
  const original = client.sendCommand.bind(client);
  client.sendCommand = (...[command, stream]: Parameters<Client['sendCommand']>) => {
    if (command.name !== 'evalsha' || stream) return original(command, stream);
    const { args } = command;
    const send = () => original(new Command('evalsha', [...args], { replyEncoding: 'utf8' }));
    return carryOut(args.map(String), send as () => Promise<unknown>);
  };
  return () => {
    client.sendCommand = original;
  };
}
