import pTimeout from 'p-timeout';
import type { Connection } from './connection.js';
import { type QueueKeys, queueKeys, type RequestKeys, requestKeys } from './keys.js';
import { type Place, placeOf } from './lanes.js';
import { encodeLimit } from './limit.js';
import { redisError } from './redis-error.js';
import type { Complete, Gone } from './request-commands.js';
import { runScript } from './run-script.js';

/** How long the answer to a message is waited for, in ms. */
const TELL_MS = 1_000;

/** What an operator may change of a request that goes on; what is left out stays. */
export interface RequestChanges {
  /** null: none. */
  readonly limit?: number | null | undefined;
  readonly priority?: number | undefined;
  readonly toleratedFailures?: string | undefined;
}

/** The life that an id has now. A tombstone ('dropped', 'void') is one too. */
export interface Life {
  readonly status: string;
  readonly generation: number;
  readonly queue: string;
}

export type GoesOn =
  | ({ readonly verdict: 'ok'; readonly mint: number; readonly epoch: number } & Place)
  | { readonly verdict: 'cancelling' }
  | Complete
  | Gone;

/** What is done to a request while it runs, by anybody. Hash slot of `{<id>}`. */
export class ControlCommands {
  readonly keys: RequestKeys;
  readonly #connection: Connection;

  constructor(connection: Connection, id: string) {
    this.#connection = connection;
    this.keys = requestKeys(id);
  }

  #run(name: 'pause' | 'resume' | 'update', args: readonly (string | number)[]) {
    const { request, work, due } = this.keys;
    const keys = name === 'pause' ? [request] : [request, work, due];
    return runScript(this.#connection.client, name, keys, args);
  }

  /** Which life of the id there is; null: none that is remembered. One plain read. */
  async life(): Promise<Life | null> {
    const [status, generation, queue] = await this.#connection.client
      .hmget(this.keys.request, 'status', 'generation', 'queue')
      .catch((error: unknown) => {
        throw redisError(error, 'life');
      });
    if (!status) return null;
    return { status, generation: Number(generation), queue: queue ?? '' };
  }

  /** Grants and mints nothing from here on; what runs may end. */
  async pause(
    generation: number,
  ): Promise<{ verdict: 'paused' } | { verdict: 'cancelling' } | Complete | Gone> {
    const reply = await this.#run('pause', [generation]);
    if (reply[0] === 'paused') return { verdict: 'paused' };
    return goesOn(reply) as { verdict: 'cancelling' } | Complete | Gone;
  }

  /** Goes on; the caller pushes what was minted. */
  async resume(generation: number): Promise<GoesOn> {
    return goesOn(await this.#run('resume', [generation]));
  }

  /** Changes what is given; the caller pushes what was minted. */
  async update(generation: number, changes: RequestChanges): Promise<GoesOn> {
    const { limit, priority = '', toleratedFailures = '' } = changes;
    const kept = limit === undefined ? '' : encodeLimit(limit);
    return goesOn(await this.#run('update', [generation, kept, priority, toleratedFailures]));
  }
}

/** A pause of a queue, as the server tells it: times are its own, in ms. */
export interface QueuePause {
  /** When it goes on; 0: when it is resumed; -1: it is not paused. */
  readonly until: number;
  /** When this was so. */
  readonly at: number;
}

/** For how long a queue is paused, in ms: 0: until it is resumed; -1: it is not paused. */
export const pausedForMs = ({ until, at }: QueuePause): number =>
  until > 0 ? Math.max(until - at, -1) : until;

/** What is done to a queue while it runs, and how its workers are told. Hash slot of `{<queue>}`. */
export class QueueControlCommands {
  readonly keys: QueueKeys;
  readonly #connection: Connection;

  constructor(connection: Connection, queue: string) {
    this.#connection = connection;
    this.keys = queueKeys(queue);
  }

  /** Pauses the queue for `forMs`; 0: until it is resumed. */
  async pause(forMs: number): Promise<QueuePause> {
    const { paused, control } = this.keys;
    const args = [forMs, control];
    const reply = await runScript(this.#connection.client, 'pause-queue', [paused], args);
    const [, until, at] = reply as [string, number, number];
    return { until, at };
  }

  async resume(): Promise<void> {
    const { paused, control } = this.keys;
    await runScript(this.#connection.client, 'resume-queue', [paused], [control]);
  }

  /**
   * For how long the queue is paused, as `pausedForMs` says it. One plain read, at a moment of a change: of a pause
   * with an end it says the whole length, also later; a tick says how much of it is left.
   */
  async pausedForMs(): Promise<number> {
    const [until, length] = await this.#connection.client
      .hmget(this.keys.paused, 'until', 'length')
      .catch((error: unknown) => {
        throw redisError(error, 'read the queue');
      });
    if (!until) return -1;
    const [of, ms] = (length ?? '').split(' ');
    return of === until ? Number(ms) : 0;
  }

  /**
   * Tells the workers of the queue that a request was cancelled or dropped: those that hold it ask
   * what became of it. Only ever sent after the fact, and a message that gets lost costs time alone; so
   * nobody waits long for a server that does not answer.
   */
  async tell(verb: 'cancel' | 'drop', id: string, generation: number): Promise<void> {
    // Without the right to publish, workers learn it at their next call.
    const said = this.#connection.client
      .spublish(this.keys.control, `${verb} ${id} ${generation}`)
      .catch(() => {});
    await pTimeout(said, { milliseconds: TELL_MS, message: false });
  }
}

/** What a message on the control channel says; undefined: nothing that this version knows. */
export function parseControl(
  message: string,
):
  | { request: { id: string; generation: number } }
  | { queue: 'pause' | 'resume' }
  | { lane: number }
  | undefined {
  const [verb, what = '', number = ''] = message.split(' ');
  if (verb === 'cancel' || verb === 'drop')
    return { request: { id: what, generation: Number(number) } };
  if (verb === 'pause-queue') return { queue: 'pause' };
  if (verb === 'resume-queue') return { queue: 'resume' };
  if (verb === 'lane') return { lane: Number(what) };
  return undefined;
}

function goesOn(reply: readonly unknown[]): GoesOn {
  const [verdict, mint, epoch, priority] = reply as [string, number, number, string];
  if (verdict === 'ok') return { verdict, mint, epoch, ...placeOf(priority) };
  if (verdict === 'complete') return { verdict, outcome: reply[1] as Complete['outcome'] };
  return { verdict: verdict === 'cancelling' ? 'cancelling' : 'gone' };
}
