import pTimeout from 'p-timeout';
import { type QueueKeys, queueKeys } from '../../contract/keys.js';
import type { Connection } from '../../redis/connection.js';
import { redisError } from '../../redis/redis-error.js';
import { run } from '../../scripts/run-script.js';

/** How long we wait for the reply to a publish, in ms. */
const NOTIFY_MS = 1_000;

/** A pause of a queue. Times are the server's, in ms. */
export interface QueuePause {
  /** When the pause ends; 0: when it is resumed; -1: it is not paused. */
  readonly until: number;
  /** When this was read. */
  readonly at: number;
}

/** For how long a queue is paused, in ms: 0: until it is resumed; -1: it is not paused. */
export const pausedForMs = ({ until, at }: QueuePause): number =>
  until > 0 ? Math.max(until - at, -1) : until;

/** Pauses and resumes a queue, and notifies its workers. Hash slot of `{<queue>}`. */
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

  /** Ends a pause. @returns whether it was paused; not for sure where the call was repeated */
  async resume(): Promise<boolean> {
    const args = { channel: this.keys.control };
    const { until } = await run(this.#connection.client, 'resume-queue', this.keys, args);
    return until >= 0;
  }

  /**
   * For how long the queue is paused, as the function `pausedForMs` defines it. One plain read, for use when a pause
   * begins or ends: of a pause with an end it answers the whole length, even later. A tick answers how much is left.
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
   * Notifies the workers of the queue that a request was cancelled or dropped. Those that have permits of it then read
   * its state. It is sent after the change, and a lost message only costs time, so the wait for the server is short.
   */
  async notifyWorkers(
    verb: 'cancel' | 'drop' | 'change',
    id: string,
    generation: number,
  ): Promise<void> {
    // Without the right to publish, workers learn of it from their next call.
    const said = this.#connection.client
      .spublish(this.keys.control, `${verb} ${id} ${generation}`)
      .catch(() => {});
    await pTimeout(said, { milliseconds: NOTIFY_MS, message: false });
  }
}

/** Parses a message on the control channel; undefined when this version does not know it. */
export function parseControl(
  message: string,
):
  | { request: { id: string; generation: number } }
  | { queue: 'pause' | 'resume' }
  | { lane: number }
  | undefined {
  const [verb, what = '', number = ''] = message.split(' ');
  if (verb === 'cancel' || verb === 'drop' || verb === 'change')
    return { request: { id: what, generation: Number(number) } };
  if (verb === 'pause-queue') return { queue: 'pause' };
  if (verb === 'resume-queue') return { queue: 'resume' };
  if (verb === 'lane') return { lane: Number(what) };
  return undefined;
}
