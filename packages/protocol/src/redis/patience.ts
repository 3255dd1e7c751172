import { isAborted } from '../common/abort.js';
import { backoff, pause, within } from '../common/waiting.js';
import { ConnectionError, IndeterminateError, PieceworkError } from '../contract/errors.js';
import type { Connection } from './connection.js';

/**
 * Retries the calls of one operation while Redis is away, full, loading or read-only. Each call is sent again until it
 * is answered, which every script allows, or until `forMs` has passed. Then the caller gets one of two errors. Refused
 * (ServerError, ConnectionError): Redis refused the call or was never reached. IndeterminateError: a call was sent and
 * its reply is missing, so it may have been carried out.
 */

/**
 * The least time of an attempt, however little is left of `forMs`, in ms. It is longer than ioredis itself retries what
 * a cluster refuses (see `REDIRECTIONS` of open-client.ts).
 */
const LEAST_MS = 2_000;

export interface PatienceOptions {
  /** How long each call is tried, in ms; 0: once, until the client itself gives it up. */
  readonly forMs: number;
  /** Any of them ends the retries: the attempt in progress is the last. */
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
    let waits: ReturnType<typeof backoff> | undefined;
    let unsure = false;
    for (;;) {
      const seen = this.#connection.watchReach();
      try {
        return await this.#answered(call, endMs);
      } catch (error) {
        // An error reply decides its own attempt, and none of the earlier ones.
        if (seen.lost() || (error instanceof ConnectionError && seen.reached())) unsure = true;
        waits ??= backoff(50, 2_000);
        const waitMs = waits.next();
        const again = error instanceof PieceworkError && error.retryable;
        if (again && performance.now() + waitMs <= endMs) await pause(waitMs, ...this.#signals);
        else this.#giveUp(error, unsure);
        if (isAborted(this.#signals)) this.#giveUp(error, unsure);
      }
    }
  }

  /**
   * Checks the server before anything is sent. Fails at once when there is no Redis; waits for a server that answers,
   * or did so before.
   * @throws ServerError · ConnectionError
   */
  async reach(): Promise<void> {
    if (this.#connection.isChecked) return;
    let unreached: ConnectionError | undefined;
    const check = async () => {
      const seen = this.#connection.watchReach();
      try {
        await this.#connection.check();
      } catch (error) {
        if (!(error instanceof ConnectionError) || seen.reached()) throw error;
        unreached = error;
      }
    };
    try {
      await this.call(check);
    } catch (error) {
      // No call was sent that could change anything.
      const why = error instanceof IndeterminateError ? error.cause : error;
      throw why instanceof PieceworkError ? await this.#connection.explained(why) : why;
    }
    if (unreached) throw unreached;
  }

  /**
   * As `call`, for calls that only read and so cannot be indeterminate. Fails at once when there is no Redis.
   * @throws whatever `call` and `reach` throw otherwise
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

  /** Bounds a call: ioredis may keep it for minutes while it reconnects. */
  #answered<T>(call: () => Promise<T>, endMs: number): Promise<T> {
    if (this.#forMs === 0) return call();
    const leftMs = Math.max(LEAST_MS, endMs - performance.now());
    return within(leftMs, call(), () => {
      const { trouble } = this.#connection;
      const why = trouble === '' ? '' : `: ${trouble}`;
      throw new ConnectionError(`no answer within ${Math.round(leftMs)} ms${why}`);
    });
  }
}
