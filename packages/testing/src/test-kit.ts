import { type EmbeddedRedis, type EmbeddedRedisOptions, startRedis } from '@piecework/embedded';
import {
  ClosedError,
  Connection,
  checkOptions,
  type OptionTable,
  option,
} from '@piecework/protocol';
import { nanoid } from 'nanoid';
import type { CompletionOutcome, RequestHandle } from 'piecework';
import { checkRequest } from './check-request.js';
import { Drain, type DrainOptions, drainOptions } from './drain.js';
import { TestClock } from './test-clock.js';

export interface TestKitOptions {
  /** How its Redis is started (see `startRedis` of `@piecework/embedded`). @default a private one on a free port */
  readonly server?: EmbeddedRedisOptions | undefined;
}

const kitOptions: OptionTable = {
  server: option.custom((value) => typeof value === 'object' && value !== null, 'an object'),
};

let open: TestKit | undefined;

/**
 * What a test suite needs of Piecework: a Redis of its own, and the clock that Piecework goes by. `close` ends both.
 * There is no way to use a Redis of yours: a clock that is ahead would end the leases of every other process on it.
 */
export class TestKit implements AsyncDisposable {
  /** URL of the Redis of this suite, to pass as `redis`. */
  readonly redis: string;
  readonly clock: TestClock;
  readonly #server: EmbeddedRedis;
  readonly #connection: Connection;
  #closing: Promise<void> | undefined;

  /** @internal */
  constructor(server: EmbeddedRedis) {
    this.#server = server;
    this.redis = server.ownUrl;
    this.#connection = Connection.open(server.ownUrl, 'this test kit');
    this.clock = new TestClock(this.#connection);
  }

  /** The name of a queue that nothing else uses, for one test. */
  queue(): string {
    return `test-${nanoid(10)}`;
  }

  /**
   * Runs a request to its end in this process, and resolves with its outcome. With `handlers` it starts a worker of
   * its own for that; otherwise your workers have to run. When nothing runs, and the request only waits for a time (a
   * delay, a backoff, a hold), the clock is moved there.
   * @throws RequestFailuresError that lists the failures, unless the request succeeded · StuckError when it cannot end
   *   as it is, or has not ended after `timeoutMs` · EmbeddedRedisError REDIS_ENDED · InvalidOptionError
   */
  async drain(request: RequestHandle, options: DrainOptions = {}): Promise<CompletionOutcome> {
    const checked = checkOptions<DrainOptions & { timeoutMs: number }>(drainOptions, options);
    checkRequest(request);
    if (this.#closing) throw new ClosedError('this test kit');
    const { clock, redis } = this;
    const drain = new Drain({ connection: this.#connection, clock, redis }, request, checked);
    return Promise.race([drain.run(), this.#server.lost]);
  }

  /** Ends the Redis and lets Piecework go by the time of the server again. Close workers and clients before. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(): Promise<void> {
    this.clock.close();
    if (open === this) open = undefined;
    await this.#connection.closeSoon(Promise.resolve());
    await this.#server.close();
  }
}

/**
 * Starts the Redis of a test suite and takes over the clock of Piecework in this process: call it in `beforeAll`, and
 * `close` in `afterAll`.
 * @throws EmbeddedRedisError when there is no Redis to start · InvalidOptionError · Error when another kit is open in
 *   this process: there is one clock
 */
export async function startTestKit(options: TestKitOptions = {}): Promise<TestKit> {
  const { server } = checkOptions<TestKitOptions>(kitOptions, options);
  const started = await startRedis(server);
  if (open) {
    await started.close();
    throw new Error(
      'a test kit is already open in this process, and it has the one clock that there is: close it first',
    );
  }
  open = new TestKit(started);
  return open;
}
