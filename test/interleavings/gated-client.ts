import { Command, Redis } from 'ioredis';
import type { Actor } from './actor.js';
import type { Trip } from './trip.js';
import { serverNow } from './virtual-time.js';

/*
 * The clients of an actor. What it sends goes over one real connection that all actors share, one
 * round trip at a time, when the scheduler says so; connections of its own would only add an order
 * that nobody decides. Everything that a connection does besides is done here by hand:
 *
 * - A blocking pop waits at the gate and is carried out as the same pop without blocking once there is
 *   a token, or answered with nothing when its time is over. To Redis that is the same: a blocked
 *   client is served at one moment, by one pop. Who of several is served first the scheduler decides,
 *   which is more than Redis may do (who waits longest).
 * - CLIENT ID and CLIENT UNBLOCK speak of these connections, not of the real one.
 * - Shard channels are subscribed on a real connection of the stage, which hands on what comes, and until the last
 *   connection that had subscribed has ended.
 */

/** What clients need of the stage. */
export interface Wire {
  readonly shared: Redis;
  readonly ear: Redis;
  /** Scripts by their sha. */
  readonly scriptNames: ReadonlyMap<string, string>;
  /** channel → clients that are subscribed, and whose they are. */
  readonly channels: Map<string, Map<Redis, Actor>>;
  /** All connections of the history, by number. */
  readonly clients: Map<number, Redis>;
  /** Brings a step to the gate; resolves when it was carried out. */
  travel(
    trip: Omit<Trip, 'key' | 'arrivedAt' | 'patient' | 'resolve' | 'reject'>,
    of: Redis,
  ): Promise<unknown>;
  /** Takes the steps of a client away from the gate. Answers how many pops were among them. */
  withdraw(client: Redis, which: 'all' | 'pops'): number;
}

const READS = new Set(['hgetall', 'hget', 'hmget', 'pending', 'xrange', 'zscore', 'ping', 'info']);
const FREE = new Set(['info', 'client', 'ping']);

const tagsOf = (args: readonly unknown[]): string[] => {
  const tags = args.map((arg) => /^[\w:]*\{([^{}"]+)\}/.exec(String(arg))?.[1]);
  return [...new Set(tags.filter((tag) => tag !== undefined))];
};

/** The random name of a process, as the history calls it. */
function renamed(actor: Actor, args: readonly unknown[]): unknown[] {
  const { alias } = actor;
  if (!alias) return [...args];
  return args.map((arg) => (typeof arg === 'string' ? arg.replaceAll(alias[0], alias[1]) : arg));
}

/** A script's clock, its last argument, tells the time at which it is carried out. */
function timed(verb: string, args: readonly unknown[]): unknown[] {
  return /^eval(sha)?$/i.test(verb) ? [...args.slice(0, -1), serverNow()] : [...args];
}

export function gatedClient(wire: Wire, actor: Actor): Redis {
  const client = new Redis({ lazyConnect: true, protocol: 2, retryStrategy: () => null });
  const id = wire.clients.size + 1;
  wire.clients.set(id, client);
  client.on('error', () => {});
  const nameOf = (verb: string, args: readonly unknown[]) =>
    (verb === 'evalsha' && wire.scriptNames.get(String(args[0]))) || verb;

  client.sendCommand = (command) => {
    const verb = command.name.toLowerCase();
    const args = (command.args as unknown[]).flat();
    const behindKeys = verb === 'evalsha' ? 2 + Number(args[1]) : 1;
    const argv = args.slice(behindKeys).map(String);
    const name = nameOf(verb, args);
    const step = { actor, name, argv, readsOnly: READS.has(name) };
    const tags = FREE.has(verb) ? [] : tagsOf(renamed(actor, args));
    if (verb === 'blmpop') {
      const send = () => wire.shared.call('lmpop', ...(args.slice(1) as string[]));
      return wire.travel({ ...step, name: 'pop', kind: 'pop', tags, send }, client);
    }
    const send = sending(
      wire,
      actor,
      id,
      verb,
      () => timed(verb, renamed(actor, args)) as string[],
    );
    return wire.travel({ ...step, kind: 'call', tags, send }, client);
  };
  client.pipeline = ((commands: unknown[][]) => ({
    exec: () => {
      const names = commands.map(([verb, ...args]) => nameOf(String(verb), args));
      const send = async () =>
        wire.shared
          .pipeline(commands.map((one) => timed(String(one[0]), renamed(actor, one))))
          .exec();
      const tags = tagsOf(commands.flat());
      const step = { actor, name: names.join('+'), kind: 'call', readsOnly: false } as const;
      return wire.travel({ ...step, tags, send }, client);
    },
  })) as unknown as Redis['pipeline'];
  client.connect = async () => {
    const step = { actor, name: 'connect', kind: 'connect', tags: [], readsOnly: true } as const;
    await wire.travel({ ...step, send: async () => undefined }, client);
    client.status = 'ready';
    client.emit('ready');
  };
  client.disconnect = () => closeClient(wire, client);
  client.duplicate = () => gatedClient(wire, actor);
  return client;
}

/** The connection ends, from either side: what waits on it fails. */
export function closeClient(wire: Wire, client: Redis): void {
  if (client.status === 'end') return;
  client.status = 'end';
  for (const members of wire.channels.values()) members.delete(client);
  wire.withdraw(client, 'all');
  client.emit('close');
  client.emit('end');
}

function sending(wire: Wire, actor: Actor, id: number, verb: string, argsNow: () => string[]) {
  const client = wire.clients.get(id) as Redis;
  return async (): Promise<unknown> => {
    const args = argsNow();
    if (verb === 'client' && /^id$/i.test(args[0] ?? '')) return id;
    if (verb === 'client' && /^unblock$/i.test(args[0] ?? '')) {
      const blocked = wire.clients.get(Number(args[1]));
      return blocked ? wire.withdraw(blocked, 'pops') : 0;
    }
    if (verb === 'ssubscribe') {
      await wire.ear.ssubscribe(...args);
      for (const channel of args) {
        const members = wire.channels.get(channel) ?? new Map<Redis, Actor>();
        wire.channels.set(channel, members.set(client, actor));
      }
      return args.length;
    }
    if (verb === 'sunsubscribe') {
      for (const channel of args) wire.channels.get(channel)?.delete(client);
      return 0;
    }
    return wire.shared.sendCommand(new Command(verb, args, { replyEncoding: 'utf8' }));
  };
}
