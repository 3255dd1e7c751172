import { type Command, Redis } from 'ioredis';
import { keepState, type PutBack } from '../scale/lost-writes.mjs';
import { scriptOf } from './script-names.js';
import { until } from './until.js';

/*
 * A server that loses its last writes, as one that restarts from a snapshot or a replica that takes over. Its
 * keys are kept before each round trip of one client; at one of them they are put back as they were some round
 * trips before, and all connections but one break.
 */

const nameOf = (verb: unknown, args: readonly unknown[]) =>
  scriptOf(String(verb), args) ?? String(verb);

export interface Forgetting {
  readonly client: Redis;
  /** Whether the round trip came at which the server forgets. */
  readonly forgot: boolean;
  /** Every round trip, for the message when a case fails. */
  readonly trips: readonly string[];
}

/**
 * A client of a server of the test's own, which forgets at round trip `n` (from 1) what the last `back` ones
 * have written. `keeper`: another client of that server, whose connection stays. `told`: the n-th is carried out
 * first, forgotten too, and answered; otherwise it fails and was never carried out.
 */
export async function forgetting(
  url: string,
  keeper: Redis,
  n: number,
  back: number,
  told: 'told' | 'untold' = 'untold',
): Promise<Forgetting> {
  const client = new Redis(url, { protocol: 2, lazyConnect: true, retryStrategy: () => 1 });
  client.on('error', () => {});
  await client.connect();
  const kept: PutBack[] = [];
  const trips: string[] = [];
  let forgot = false;
  const forget = async (): Promise<void> => {
    // First of all: no server answers over an old connection what it has forgotten.
    client.disconnect();
    forgot = true;
    const putBack = kept[Math.max(0, n - 1 - back)];
    await until(() => client.status === 'end');
    // Nor anybody else's, from the moment on at which it has.
    const loss = keeper.multi();
    for (const type of ['normal', 'pubsub'])
      loss.call('CLIENT', 'KILL', 'TYPE', type, 'SKIPME', 'yes');
    putBack?.(loss);
    const replies = await loss.exec();
    for (const [error] of replies ?? []) if (error) throw error;
    await client.connect();
  };
  const travel = async (name: string, send: () => unknown): Promise<unknown> => {
    const trip = kept.push(await keepState(keeper));
    trips.push(`${trip} ${name}${trip === n ? ' forgotten' : ''}`);
    if (trip !== n) return send();
    if (told === 'untold') {
      await forget();
      throw new Error('Connection is closed.');
    }
    try {
      return await send();
    } finally {
      await forget();
    }
  };
  const sendCommand = client.sendCommand.bind(client);
  const pipeline = client.pipeline.bind(client);
  let open = 0;
  client.sendCommand = (command: Command, stream?: never) => {
    // What belongs to a pipeline, or to connecting, is no round trip of its own.
    const own = !stream && client.status === 'ready' && open === 0 && command.name !== 'info';
    if (!own) return sendCommand(command, stream);
    const sent = travel(nameOf(command.name, command.args), () => sendCommand(command));
    // ioredis sends unanswered commands again behind a reconnect, and does not look at what that call returns.
    sent.catch(() => {});
    return sent;
  };
  client.pipeline = ((commands: unknown[][]) => ({
    exec: () =>
      travel(commands.map(([verb, ...args]) => nameOf(verb, args)).join('+'), async () => {
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
    trips,
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
