import pTimeout from 'p-timeout';
import { type QueueKeys, queueKeys, type RequestKeys, requestKeys } from '../contract/keys.js';
import { type Place, placeOf } from '../contract/lanes.js';
import { encodeLimit } from '../contract/limit.js';
import type { Connection } from '../redis/connection.js';
import { redisError } from '../redis/redis-error.js';
import { type Reply, run } from '../scripts/run-script.js';

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

type Changed = Reply<'update'>;
type Ok = Extract<Changed, { readonly verdict: 'ok' }>;

export type GoesOn = (Omit<Ok, 'priority'> & Place) | Exclude<Changed, Ok>;

/** What is done to a request while it runs, by anybody. Hash slot of `{<id>}`. */
export class ControlCommands {
  readonly keys: RequestKeys;
  readonly #connection: Connection;

  constructor(connection: Connection, id: string) {
    this.#connection = connection;
    this.keys = requestKeys(id);
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
  pause(generation: number): Promise<Reply<'pause'>> {
    return run(this.#connection.client, 'pause', this.keys, { generation });
  }

  /** Goes on; the caller pushes what was minted. */
  async resume(generation: number): Promise<GoesOn> {
    return goesOn(await run(this.#connection.client, 'resume', this.keys, { generation }));
  }

  /** Holds the request back for `holdMs`; answers until when it is held, in server time. */
  hold(generation: number, holdMs: number): Promise<Reply<'hold'>> {
    return run(this.#connection.client, 'hold', this.keys, { generation, holdMs });
  }

  /** Changes what is given; the caller pushes what was minted. */
  async update(generation: number, changes: RequestChanges): Promise<GoesOn> {
    const { limit, priority, toleratedFailures = '' } = changes;
    const kept = limit === undefined ? undefined : encodeLimit(limit);
    const args = { generation, limit: kept, priority, toleratedFailures };
    return goesOn(await run(this.#connection.client, 'update', this.keys, args));
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
    const args = { forMs, channel: this.keys.control };
    const { until, now } = await run(this.#connection.client, 'pause-queue', this.keys, args);
    return { until, at: now };
  }

  async resume(): Promise<void> {
    const args = { channel: this.keys.control };
    await run(this.#connection.client, 'resume-queue', this.keys, args);
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

const goesOn = (reply: Changed): GoesOn =>
  reply.verdict === 'ok' ? { ...reply, ...placeOf(reply.priority) } : reply;
