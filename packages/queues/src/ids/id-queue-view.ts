import {
  ClosedError,
  Connection,
  checkOption,
  checkOptions,
  IdQueueCommands,
  type KeptIdFailure,
  type OptionTable,
  option,
  Patience,
  type RedisInput,
  type SharedConnection,
} from '@piecework/protocol';
import type { IdQueueCounts } from './id-queue.js';
import { NoQueueError } from './id-queue-errors.js';
import { idQueueOptions } from './id-queue-options.js';

export interface IdQueueViewOptions {
  /** Where Redis is, or a connection to share. A client that you pass in is never closed. */
  readonly redis: RedisInput | SharedConnection;
  /** How long each look is repeated while Redis is unavailable, in ms; 0: once. At most a day. @default 30000 */
  readonly unavailableMs?: number | undefined;
}

export interface IdQueueLookOptions {
  /** How many of the latest failures are read, 0 to 100. @default 20 */
  readonly failures?: number | undefined;
}

/** An id queue at one moment. Times are the server's, in ms since 1970. */
export interface IdQueueLook {
  readonly counts: IdQueueCounts;
  /** How long a consumer may work on an item, in ms. */
  readonly timeoutMs: number;
  /** Whether an id that is added again while it is pending or running stays one item. */
  readonly unique: boolean;
  /**
   * When the time of an item that runs ends first. In the past: that item is offered to other consumers. undefined: none
   * runs.
   */
  readonly next: number | undefined;
  /** The latest first. */
  readonly failures: readonly KeptIdFailure[];
}

const viewOptions: OptionTable = {
  redis: idQueueOptions.redis,
  unavailableMs: idQueueOptions.unavailableMs,
};
const lookOptions: OptionTable = { failures: option.integer(0, 100, 20) };

/**
 * Looks at an id queue without joining it: it writes nothing, and creates no queue. Each look is one call of Redis, whose
 * cost does not grow with the queue.
 */
export class IdQueueView implements AsyncDisposable {
  readonly name: string;
  readonly #connection: Connection;
  readonly #ownsConnection: boolean;
  readonly #commands: IdQueueCommands;
  readonly #unavailableMs: number;
  readonly #closing = new AbortController();

  /** `name` as for `IdQueue.join`. @throws InvalidOptionError */
  constructor(name: string, options: IdQueueViewOptions) {
    checkOption('name', name, option.name());
    const checked = checkOptions<Required<IdQueueViewOptions>>(viewOptions, options);
    this.name = name;
    this.#connection = Connection.of(checked.redis);
    this.#ownsConnection = this.#connection !== checked.redis;
    this.#commands = new IdQueueCommands(this.#connection, name);
    this.#unavailableMs = checked.unavailableMs;
  }

  /**
   * @throws NoQueueError when there is no queue of this name · InvalidOptionError · ClosedError after `close` ·
   *   ServerError, ConnectionError when Redis was unavailable for `unavailableMs`
   */
  async look(options: IdQueueLookOptions = {}): Promise<IdQueueLook> {
    const { failures: wanted } = checkOptions<{ failures: number }>(lookOptions, options);
    const { signal } = this.#closing;
    if (signal.aborted) throw new ClosedError(`the view of the id queue ${this.name}`);
    const forMs = this.#unavailableMs;
    const patience = new Patience(this.#connection, this.name, { forMs, signals: [signal] });
    const seen = await patience.call(async () => {
      await this.#connection.check();
      return this.#commands.inspect('', 0, wanted);
    });
    if (seen.verdict === 'gone') throw new NoQueueError(this.name);
    const { pending, running, completed, failures, timeoutMs, unique, next, failed } = seen;
    return {
      ...{ counts: { pending, running, completed, failures }, timeoutMs, unique: unique === 1 },
      ...{ next: next < 0 ? undefined : next, failures: failed },
    };
  }

  /** Closes the connection unless it was passed in. */
  async close(): Promise<void> {
    this.#closing.abort();
    if (this.#ownsConnection) await this.#connection.closeSoon();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
