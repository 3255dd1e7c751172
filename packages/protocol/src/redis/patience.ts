import pTimeout from 'p-timeout';
import { isAborted } from '../common/abort.js';
import { backoff, pause } from '../common/waiting.js';
import { ConnectionError, IndeterminateError, PieceworkError } from '../contract/errors.js';
import type { Connection } from './connection.js';

/**
 * How an operation on one request bears that Redis is away, full, loading, read-only …: each of its
 * calls is sent again until it is answered, as every script bears that, or until the patience is at
 * its end. Then the caller learns one of two things. Refused: Redis said no, or was never reached
 * (ServerError, ConnectionError). Or IndeterminateError: a call was sent and its reply is missing, so
 * that it may have been carried out.
 */

/**
 * An attempt gets at least so long, however little patience is left, in ms: longer than ioredis repeats by
 * itself what a cluster refuses (see `REDIRECTIONS` of open-client.ts).
 */
const LEAST_MS = 2_000;

export interface PatienceOptions {
  /** How long each call is tried, in ms; 0: once, until the client itself gives it up. */
  readonly forMs: number;
  /** Each of them ends the trying: the attempt under way is the last. */
  readonly signals?: readonly (AbortSignal | undefined)[];
}

export class Patience {
  readonly #connection: Connection;
  readonly #requestId: string;
  readonly #forMs: number;
  readonly #signals: readonly (AbortSignal | undefined)[];

  constructor(connection: Connection, requestId: string, { forMs, signals = [] }: PatienceOptions) {
    this.#connection = connection;
    this.#requestId = requestId;
    this.#forMs = forMs;
    this.#signals = signals;
  }

  /** @throws IndeterminateError · whatever `call` throws otherwise */
  async call<T>(call: () => Promise<T>): Promise<T> {
    const endMs = performance.now() + this.#forMs;
    const waits = backoff(50, 2_000);
    let unsure = false;
    for (;;) {
      const seen = this.#connection.watchReach();
      try {
        return await this.#answered(call, endMs);
      } catch (error) {
        // An error reply settles the fate of its own attempt, and of none before it.
        if (seen.lost() || (error instanceof ConnectionError && seen.reached())) unsure = true;
        const waitMs = waits.next();
        const again = error instanceof PieceworkError && error.retryable;
        if (again && performance.now() + waitMs <= endMs) await pause(waitMs, ...this.#signals);
        else this.#giveUp(error, unsure);
        if (isAborted(this.#signals)) this.#giveUp(error, unsure);
      }
    }
  }

  /**
   * Looks at the server before anything is sent. That there is no Redis is told at once; what answers,
   * or did before, is waited for.
   * @throws ServerError · ConnectionError
   */
  async reach(): Promise<void> {
    let unreached: ConnectionError | undefined;
    const look = async () => {
      const seen = this.#connection.watchReach();
      try {
        await this.#connection.check();
      } catch (error) {
        if (!(error instanceof ConnectionError) || seen.reached()) throw error;
        unreached = error;
      }
    };
    try {
      await this.call(look);
    } catch (error) {
      // Nothing that changes anything was sent.
      const why = error instanceof IndeterminateError ? error.cause : error;
      throw why instanceof PieceworkError ? await this.#connection.explained(why) : why;
    }
    if (unreached) throw unreached;
  }

  /**
   * As `call`, for what only reads: nothing can have been carried out. That there is no Redis is told at
   * once. @throws whatever `call` and `reach` throw otherwise
   */
  async read<T>(call: () => Promise<T>): Promise<T> {
    await this.reach();
    return this.call(call).catch((error: unknown) => {
      throw error instanceof IndeterminateError ? error.cause : error;
    });
  }

  #giveUp(error: unknown, unsure: boolean): never {
    throw unsure ? new IndeterminateError(this.#requestId, error) : error;
  }

  /** The client library may hold a call back for minutes while it reconnects. */
  async #answered<T>(call: () => Promise<T>, endMs: number): Promise<T> {
    if (this.#forMs === 0) return call();
    const leftMs = Math.max(LEAST_MS, endMs - performance.now());
    const fallback = () => {
      const { trouble } = this.#connection;
      const why = trouble === '' ? '' : `: ${trouble}`;
      throw new ConnectionError(`no answer within ${Math.round(leftMs)} ms${why}`);
    };
    return pTimeout(call(), { milliseconds: leftMs, fallback });
  }
}
