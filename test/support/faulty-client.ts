import { type Callback, Cluster, Command, Redis, type RedisOptions, ReplyError } from 'ioredis';
import { SlotMap } from '../../packages/protocol/dist/redis/cluster/slot-map.js';
import { gate, type RedisAddress } from './flow.js';

/*
 * The clients of one actor (a producer, a worker, a notifier, an agenda), whose n-th round trip goes
 * wrong. A pipeline is one round trip, and so is connecting; the clients that an actor makes of its
 * client (the blocking one, the subscribing one) count in the same row. Of a cluster the actor's client
 * as a whole goes wrong: an error is one that it gave up on, after redirections and tries of its own.
 */

/** What Redis says instead of running a command. */
const REFUSALS = {
  OOM: "OOM command not allowed when used memory > 'maxmemory'.",
  READONLY: "READONLY You can't write against a read only replica.",
  LOADING: 'LOADING Redis is loading the dataset in memory',
  BUSY: 'BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.',
  MISCONF: 'MISCONF Redis is configured to save RDB snapshots, but it cannot persist to disk.',
  NOSCRIPT: 'NOSCRIPT No matching script. Please use EVAL.',
  CLUSTERDOWN: 'CLUSTERDOWN The cluster is down',
  TRYAGAIN: 'TRYAGAIN Multiple keys request during rehashing of slot',
} as const;

type Refusal = keyof typeof REFUSALS;

/**
 * - not sent: the connection broke before
 * - reply lost: done by the server; the caller is told that the connection broke
 * - sent again: the same, and the client library sends it again and hands out the second reply
 * - half refused: of a pipeline, the last command is answered with an error
 * - ends before, ends after: the actor's process ends, before it is sent or when it is done; from
 *   there on nothing of it is sent any more
 * - an error: answered with it, not done
 */
export const FAULTS = [
  'not sent',
  'reply lost',
  'sent again',
  'half refused',
  'ends before',
  'ends after',
  ...(Object.keys(REFUSALS) as Refusal[]),
] as const;
export type Fault = (typeof FAULTS)[number];

/** One round trip: how it is sent, and how its answer looks when it is refused. */
interface Trip {
  readonly name: string;
  readonly kind: 'command' | 'script' | 'pipeline' | 'connect';
  /** Sends it; again, when called again. */
  readonly send: () => unknown;
  /** The answer with an error: of the first command, of the last, or of all. */
  readonly refuse: (error: Error, which: 'first' | 'last' | 'all') => Promise<unknown>;
}

const broken = () => new Error('Connection is closed.');

const OPTIONS: RedisOptions = {
  protocol: 2,
  lazyConnect: true,
  retryStrategy: () => null,
  maxRetriesPerRequest: 0,
};

/** What their connections to the nodes of a cluster are called there. */
export const FAULTY = 'faulty';

/** Options of a cluster's servers, which plain clients of one server get as well: whose they are. */
const rowOf = Symbol('row');
type OfRow = RedisOptions & { [rowOf]?: FaultyClients };

const { openAt } = SlotMap.prototype;
SlotMap.prototype.openAt = function (address, options) {
  const client = openAt.call(this, address, options);
  return (client.options as OfRow)[rowOf]?.join(client) ?? client;
};

export class FaultyClients {
  readonly #nth: number;
  readonly #fault: Fault | undefined;
  readonly #clients: (Redis | Cluster)[] = [];
  #calls = 0;
  #struck: 'not yet' | 'struck' | 'does not apply' = 'not yet';
  #dead = false;
  readonly #died = gate();
  /** Every round trip, for the message when a case fails. */
  readonly log: string[] = [];

  /** Without a fault it only counts. */
  constructor(nth = 0, fault?: Fault) {
    this.#nth = nth;
    this.#fault = fault;
  }

  /** Whether the n-th round trip came, and whether this fault can befall it. */
  get struck(): 'not yet' | 'struck' | 'does not apply' {
    return this.#struck;
  }

  /** Whether the actor's process has ended. */
  get dead(): boolean {
    return this.#dead;
  }

  /** Resolves when the actor's process ends; never, if it does not. */
  get died(): Promise<void> {
    return this.#died.opened;
  }

  /** How many round trips there were. */
  get calls(): number {
    return this.#calls;
  }

  /** A client that is connected. */
  async open(address: RedisAddress): Promise<Redis | Cluster> {
    const client =
      typeof address === 'string' ? new Redis(address, OPTIONS) : this.#cluster(address.nodes);
    client.on('error', () => {});
    await client.connect();
    // Else it would connect to each at the first call there, on which nobody waits for long here.
    if (client instanceof Cluster)
      await Promise.all(client.nodes('master').map((one) => one.ping()));
    return this.join(client);
  }

  #cluster(nodes: { host: string; port: number }[]): Cluster {
    const redisOptions: OfRow = { ...OPTIONS, connectionName: FAULTY, [rowOf]: this };
    return new Cluster(nodes, {
      lazyConnect: true,
      clusterRetryStrategy: () => null,
      // On a busy machine one second is not much, and there is no second try.
      slotsRefreshTimeout: 30_000,
      redisOptions,
    });
  }

  /** Cuts every connection, without a word. */
  end(): void {
    for (const client of this.#clients) client.disconnect();
  }

  /** The connections that are not closed. */
  get left(): number {
    // A cluster client that is told twice to disconnect never says that it has: its nodes tell.
    return this.#clients.filter((client) =>
      client instanceof Cluster
        ? client.nodes().length > 0
        : client.status !== 'end' && client.status !== 'wait',
    ).length;
  }

  /** Takes a client into the row. */
  join<Joined extends Redis | Cluster>(joined: Joined): Joined {
    const client = joined as Redis;
    client.on('error', () => {});
    this.#clients.push(client);
    // Of a cluster a third argument says to which node a pipeline goes.
    const send: (...all: unknown[]) => unknown = client.sendCommand.bind(client) as never;
    const connect = client.connect.bind(client);
    const duplicate = client.duplicate.bind(client);
    const pipeline = client.pipeline.bind(client);
    const ours = new WeakSet<object>();
    client.sendCommand = (command, stream, ...node: unknown[]) => {
      // Commands of a pipeline were counted with it; those of the handshake belong to connecting;
      // and what waited for the connection comes by a second time.
      if (stream || client.status === 'connect' || ours.has(command))
        return send(command, stream, ...node);
      return this.#travel({
        name: command.name,
        kind: command.name === 'evalsha' ? 'script' : 'command',
        send: () => {
          const copy = new Command(command.name, command.args, { replyEncoding: 'utf8' });
          ours.add(copy);
          return send(copy);
        },
        refuse: (error) => Promise.reject(error),
      });
    };
    client.connect = (callback?: Callback<void>) =>
      this.#travel({
        name: 'connect',
        kind: 'connect',
        send: () => connect(callback),
        refuse: (error) => Promise.reject(error),
      }) as Promise<void>;
    client.duplicate = (options) => this.join(duplicate(options));
    client.pipeline = ((commands: unknown[][]) => ({
      exec: () =>
        this.#travel({
          name: commands.map(([verb]) => verb).join('+'),
          kind: 'pipeline',
          send: () => pipeline(commands).exec(),
          refuse: async (error, which) => {
            const sent = commands.filter(
              (_, i) => which !== 'all' && (i === 0) === (which === 'last'),
            );
            const replies = sent.length > 0 ? await pipeline(sent).exec() : [];
            const refused = commands.slice(sent.length).map(() => [error, undefined]);
            return which === 'first' ? [...refused, ...replies!] : [...replies!, ...refused];
          },
        }),
    })) as unknown as Redis['pipeline'];
    return joined;
  }

  async #travel(trip: Trip): Promise<unknown> {
    if (this.#dead) throw broken();
    this.#calls += 1;
    const strikes = this.#calls === this.#nth && this.#fault !== undefined;
    this.log.push(`${this.#calls} ${trip.name}${strikes ? `: ${this.#fault}` : ''}`);
    return strikes ? this.#strike(trip, this.#fault as Fault) : trip.send();
  }

  async #strike(trip: Trip, fault: Fault): Promise<unknown> {
    this.#struck = applies(fault, trip) ? 'struck' : 'does not apply';
    if (this.#struck !== 'struck') return trip.send();
    switch (fault) {
      case 'not sent':
        throw broken();
      case 'reply lost':
        await trip.send();
        throw broken();
      case 'sent again':
        await trip.send();
        return trip.send();
      case 'half refused':
        return trip.refuse(new ReplyError(REFUSALS.TRYAGAIN), 'last');
      case 'ends before':
        throw this.#die();
      case 'ends after':
        await trip.send();
        throw this.#die();
      default:
        return trip.refuse(new ReplyError(REFUSALS[fault]), fault === 'NOSCRIPT' ? 'first' : 'all');
    }
  }

  #die(): Error {
    this.#dead = true;
    this.end();
    this.#died.open();
    return broken();
  }
}

/** Redis answers connecting with no error, and only a script with NOSCRIPT. */
function applies(fault: Fault, { kind }: Trip): boolean {
  switch (fault) {
    case 'not sent':
    case 'reply lost':
    case 'ends before':
    case 'ends after':
      return true;
    case 'sent again':
      return kind !== 'connect';
    case 'half refused':
      return kind === 'pipeline';
    case 'NOSCRIPT':
      return kind === 'script' || kind === 'pipeline';
    default:
      return kind !== 'connect';
  }
}
