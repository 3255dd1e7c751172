import {
  Connection,
  ControlCommands,
  type Entered,
  type Entry,
  type Outcome,
  QueueCommands,
  type Settled,
} from '@piecework/protocol';
import { RequestCommands } from '@piecework/protocol/testing';
import { afterAll } from 'vitest';
import { keysNaming } from './own-keys.js';
import { sharedServer, testConnection } from './redis.js';

/*
 * Situations for tests of the scripts, each one line in a test:
 *
 *   nothing → opened → created → filled → sealed
 *
 * and a Hand, which is a worker without a will of its own: it enters, reads and settles when told.
 */

export interface Options {
  /** Sub-requests to append; default 0. */
  items?: number;
  limit?: number;
  priority?: number;
  attempts?: number;
  maxCrashes?: number;
  delayMs?: number;
  /** ms since 1970. */
  runAt?: number;
  expedite?: boolean;
  deadlineMs?: number;
  onExceeded?: 'continue' | 'cancel';
  toleratedFailures?: number | string;
  window?: number;
  task?: string;
  results?: 'keep' | 'discard';
  retentionMs?: number;
  onProducerLost?: 'seal' | 'cancel';
  producerLeaseMs?: number;
  owner?: string;
  /** Default: a new one. */
  queue?: string;
  id?: string;
}

/** One request, and the commands of both of its sides. */
export interface Scene {
  readonly id: string;
  readonly queue: QueueCommands;
  readonly request: RequestCommands;
  readonly generation: number;
  readonly connection: Connection;
}

export const PRODUCER = 'maker';
export const LEASE_MS = 30_000;

let shared: Promise<Connection> | undefined;
let count = 0;
const boot = `${process.pid.toString(36)}${Date.now().toString(36)}`;

afterAll(async () => {
  const connection = await shared;
  shared = undefined;
  // A server of our own goes with all its keys.
  if (connection && sharedServer) {
    for (const key of await keysNaming(connection.client, boot))
      await connection.client.unlink(key);
  }
  await connection?.close();
});

/** The connection of this test file. */
export function connected(): Promise<Connection> {
  shared ??= testConnection().then((input) => Connection.open(input));
  return shared;
}

/** A name that no other test uses. */
export function freshName(what: string): string {
  count += 1;
  return `${what}-${boot}-${count}`;
}

/** The options that a producer hands to `create` and `submit`. */
export function optionsOf(options: Options, queue: string): string {
  const fields = {
    queue,
    priority: options.priority ?? 50,
    limit: options.limit ?? 3,
    task: options.task ?? '',
    attempts: options.attempts ?? 1,
    policy: '',
    maxCrashes: options.maxCrashes ?? 3,
    window: options.window ?? 0,
    results: options.results ?? 'keep',
    retentionMs: options.retentionMs ?? 200_000,
    toleratedFailures: options.toleratedFailures ?? 0,
    digest: 'digest',
    onProducerLost: options.onProducerLost ?? 'seal',
    metadata: '',
    onExceeded: options.onExceeded ?? 'continue',
    ...(options.delayMs === undefined ? {} : { delayMs: options.delayMs }),
    ...(options.runAt === undefined ? {} : { heldUntil: options.runAt }),
    ...(options.expedite ? { expedite: 1 } : {}),
    ...(options.deadlineMs === undefined ? {} : { deadlineMs: options.deadlineMs }),
  };
  return JSON.stringify(Object.entries(fields).flat().map(String));
}

/** Payloads 'item 0', 'item 1', … */
export const items = (n: number, from = 0): string[] =>
  Array.from({ length: n }, (_, i) => `item ${from + i}`);

export const given = {
  /** Names, and nothing in Redis. */
  async nothing({ queue, id }: Options = {}): Promise<Scene> {
    const connection = await connected();
    const name = id ?? freshName('request');
    return {
      id: name,
      connection,
      queue: new QueueCommands(connection, queue ?? freshName('queue')),
      request: new RequestCommands(connection, name),
      generation: 0,
    };
  },

  /** Open on the queue side; nothing on the request side. */
  async opened(options: Options = {}): Promise<Scene> {
    const scene = await given.nothing(options);
    return { ...scene, generation: await scene.queue.intent(scene.id) };
  },

  /** The request exists and is empty. */
  async created(options: Options = {}): Promise<Scene> {
    const scene = await given.opened(options);
    const made = await create(scene, options);
    if (made.verdict !== 'void') return scene;
    // Within the millisecond in which an earlier life began: asked for again, as a producer does.
    const again = { ...scene, generation: await scene.queue.intent(scene.id, made.above) };
    await create(again, options);
    return again;
  },

  /** It has its sub-requests and its tokens. */
  async filled(options: Options = {}): Promise<Scene> {
    const scene = await given.created(options);
    await append(scene, options.items ?? 3);
    return scene;
  },

  /** No more will be added. */
  async sealed(options: Options = {}): Promise<Scene> {
    const scene = await given.filled(options);
    await scene.request.seal(scene.generation, PRODUCER, options.items ?? 3);
    return scene;
  },
};

/** Open, or with these items. */
export function create(
  { request, generation, queue }: Scene,
  options: Options = {},
  more: { readonly call?: string; readonly items?: readonly string[] } = {},
) {
  const { owner = 'owner', producerLeaseMs: leaseMs = 600_000 } = options;
  const text = optionsOf(options, queue.keys.queue);
  return request.create({ generation, owner, leaseMs, options: text, ...more });
}

/** Appends and pushes the tokens. */
export async function append(scene: Scene, n: number, first = 0): Promise<void> {
  const { id, generation, queue, request } = scene;
  const appended = await request.append(generation, PRODUCER, first, items(n, first));
  if (appended.verdict !== 'ok') throw new Error(`append: ${appended.verdict}`);
  if (appended.mint > 0) await queue.push({ id, generation, ...appended });
}

/** Takes every token out of the lists of a queue, in the order in which they are served. */
export async function popAll({ queue, connection }: Scene): Promise<string[]> {
  const { lists } = queue.lanes;
  const tokens: string[] = [];
  for (;;) {
    const popped = await connection.client.call('lmpop', lists.length, ...lists, 'RIGHT');
    if (!popped) return tokens;
    tokens.push(...(popped as [string, string[]])[1]);
  }
}

/** Ticks once and does with each claim what a ticking process does. Answers how many there were. */
export async function tickOnce({ queue, connection }: Scene, rests = false): Promise<number> {
  const tick = await queue.tick('', '', '', rests);
  const { claims, resumedAt, now } = tick;
  for (const claim of claims) {
    const tended = await new RequestCommands(connection, claim.id).tend(
      claim.generation,
      claim.passed,
      resumedAt,
      undefined,
      now,
      tick,
    );
    if (tended.verdict === 'ok') await queue.writeBack(claim, tended);
    else {
      const outcome = tended.verdict === 'complete' ? tended.outcome : 'gone';
      await queue.finish(claim.id, claim.generation, outcome);
    }
  }
  return claims.length;
}

/** What a worker says of itself as it settles; by default it keeps all permits and runs nothing. */
interface Held {
  readonly keep?: number;
  readonly running?: number;
  /** Default: the next one. An earlier one makes it a call that comes late. */
  readonly op?: number;
  /** Default: the hold of its last enter. '': it is not sure. */
  readonly grantNo?: string;
}

/** A worker's dealings with one request, call by call. Nothing is pushed unless told. */
export class Hand {
  op = 0;
  /** Number of its last call that was answered. 0: as the workers of older versions, who do not say. */
  answered = 0;
  permits = 0;
  /** Which hold its permits are of. */
  grantNo = '';
  readonly #scene: Scene;
  readonly name: string;

  constructor(scene: Scene, name = 'worker') {
    this.#scene = scene;
    this.name = name;
  }

  /** Enters with tokens of these epochs (default: one of the first). @throws Error unless 'ok' */
  async enter(
    want: number,
    epochs: readonly (string | number)[] = [1],
    most = 0,
  ): Promise<Entered> {
    const entered = await this.tryEnter(want, epochs, '*', most);
    if (entered.verdict !== 'ok') throw new Error(`enter: ${entered.verdict}`);
    return entered;
  }

  async tryEnter(want: number, epochs: readonly (string | number)[] = [1], tasks = '*', most = 0) {
    this.op += 1;
    const entered = await this.#enter(this.op, want, epochs, tasks, most);
    if (entered.verdict === 'ok') {
      this.permits = entered.permits;
      this.grantNo = entered.grantNo;
    }
    this.answered = this.op;
    return entered;
  }

  /** Sends the last enter again. */
  reenter(want: number, epochs: readonly (string | number)[] = [1], op = this.op) {
    return this.#enter(op, want, epochs, '*');
  }

  #enter(op: number, want: number, epochs: readonly (string | number)[], tasks: string, most = 0) {
    const { request, generation } = this.#scene;
    const { name, answered } = this;
    const tokens = epochs.map(String);
    return request.enter({
      generation,
      worker: name,
      op,
      want,
      leaseMs: LEASE_MS,
      tasks,
      epochs: tokens,
      answered,
      most,
    });
  }

  /** Reads new sub-requests. */
  async read(n: number): Promise<Entry[]> {
    const entries = await this.#scene.request.read(this.name, n);
    if (entries === 'gone') throw new Error('read: gone');
    return entries;
  }

  /** Takes parked sub-requests that are ready. */
  async take(n: number): Promise<Entry[]> {
    const { generation, request } = this.#scene;
    this.op += 1;
    const taken = await request.take(generation, this.name, n, this.op, this.answered);
    if (typeof taken === 'string') throw new Error(`take: ${taken}`);
    this.answered = this.op;
    return taken.entries;
  }

  /** Enters for `n` permits and reads as many. */
  async hold(n: number, epochs?: readonly (string | number)[]): Promise<Entry[]> {
    await this.enter(n, epochs);
    return this.read(n);
  }

  /** Enters for `n` permits, and reads as many in the same call. */
  async holdAtOnce(n: number): Promise<Entry[]> {
    const { entries } = await this.enter(n, [1], n);
    return [...entries];
  }

  async trySettle(
    outcomes: readonly Outcome[],
    { keep = this.permits, running = 0, op, grantNo = this.grantNo }: Held = {},
  ) {
    const { request, generation } = this.#scene;
    if (op === undefined) this.op += 1;
    const { answered } = this;
    const numbers = {
      op: op ?? this.op,
      grantNo,
      leaseMs: LEASE_MS,
      keep,
      running,
      read: 0,
      answered,
    };
    const { settled } = await request.settle(generation, this.name, numbers, outcomes);
    if (settled.verdict === 'ok') this.permits = settled.permits;
    if (op === undefined) this.answered = this.op;
    return settled;
  }

  /** @throws Error unless the verdict is 'ok' */
  async settle(outcomes: readonly Outcome[], numbers: Held = {}): Promise<Settled> {
    const settled = await this.trySettle(outcomes, numbers);
    if (settled.verdict !== 'ok') throw new Error(`settle: ${settled.verdict}`);
    return settled;
  }

  renew() {
    return this.#scene.request.renew(this.#scene.generation, this.name, LEASE_MS, []);
  }
}

/** What holds a request back. */
export const holds = ({ connection, id }: Scene) => new ControlCommands(connection, id);

export const success = ({ entry }: Pick<Entry, 'entry'>, value = 'done'): Outcome => ({
  entry,
  kind: 's',
  value,
  cost: '100',
});

export const failure = ({ entry }: Pick<Entry, 'entry'>, delayMs = 0): Outcome => ({
  entry,
  kind: 'f',
  value: '{"name":"Error","message":"no"}',
  delayMs,
  cost: '20',
});

export const back = ({ entry }: Pick<Entry, 'entry'>): Outcome => ({
  entry,
  kind: 'b',
  cost: '[3,0]',
});
