import { type Command, Redis } from 'ioredis';
import { keepState } from '../scale/lost-writes.mjs';
import { until } from './until.js';

/*
 * A server that loses its last writes, as one that restarts from a snapshot or a replica that takes over. Its
 * keys are kept before each round trip of one client; at one of them they are put back as they were some round
 * trips before, the connection breaks, and the round trip is not carried out.
 */

export interface Forgetting {
  readonly client: Redis;
  /** Whether the round trip came at which the server forgets. */
  readonly forgot: boolean;
}

/**
 * A client of a server of the test's own, which forgets at round trip `n` (from 1) what the last `back` ones
 * have written. `keeper`: another client of that server.
 */
export async function forgetting(
  url: string,
  keeper: Redis,
  n: number,
  back: number,
): Promise<Forgetting> {
  const client = new Redis(url, { protocol: 2, lazyConnect: true, retryStrategy: () => 1 });
  client.on('error', () => {});
  await client.connect();
  const kept: (() => Promise<unknown>)[] = [];
  let forgot = false;
  const forget = async (): Promise<never> => {
    // First of all: no server answers over an old connection what it has forgotten.
    client.disconnect();
    forgot = true;
    const putBack = kept.at(-1 - back) ?? kept[0];
    await until(() => client.status === 'end');
    await putBack?.();
    await client.connect();
    throw new Error('Connection is closed.');
  };
  const travel = async (send: () => unknown): Promise<unknown> => {
    kept.push(await keepState(keeper));
    return kept.length === n ? forget() : send();
  };
  const sendCommand = client.sendCommand.bind(client);
  const pipeline = client.pipeline.bind(client);
  let open = 0;
  client.sendCommand = (command: Command, stream?: never) => {
    // What belongs to a pipeline, or to connecting, is no round trip of its own.
    const own = !stream && client.status === 'ready' && open === 0 && command.name !== 'info';
    return own ? travel(() => sendCommand(command)) : sendCommand(command, stream);
  };
  client.pipeline = ((commands: unknown[][]) => ({
    exec: () =>
      travel(async () => {
        open += 1;
        try {
          return await pipeline(commands).exec();
        } finally {
          open -= 1;
        }
      }),
  })) as unknown as Redis['pipeline'];
  return {
    client,
    get forgot() {
      return forgot;
    },
  };
}

/** Waits until nothing of it is connected. */
export async function ended({ client }: Forgetting): Promise<void> {
  client.disconnect();
  await until(() => client.status === 'end');
}
