import { type NamedChannel, Notifier } from '@piecework/notifier';
import { type Items, type OpenRequest, Producer, type RequestOptions } from '@piecework/producer';
import {
  Connection,
  checkOption,
  checkOptions,
  type Idle,
  InvalidOptionError,
  idleOption,
  type Jsonify,
  type OptionTable,
  option,
  type RedisInput,
  shape,
  type Telemetry,
  type TraceContext,
  telemetryOption,
} from '@piecework/protocol';
import type { StandardSchemaV1 } from '@standard-schema/spec';
import { Admin, adminOptions } from '../operate/admin.js';
import type { QueueEvent, QueueEventsOptions } from '../operate/queue-events/queue-event.js';
import { checkedItems } from './checked-items.js';
import { RequestHandle } from './request-handle.js';
import { SubmittedRequest } from './submitted-request.js';
import { check, type Task } from './task.js';
import { Traced } from './traced.js';

export interface PieceworkOptions {
  /** Where Redis is: a URL, ioredis options, `{ nodes }` of a cluster, or a client of yours. */
  readonly redis: RedisInput;
  /** Name of the queue. @default 'req' */
  readonly queue?: string | undefined;
  /**
   * How long `status`, and all that `admin` and handles do to a request, keep trying while Redis is away, in ms
   * (see AdminOptions). A submission has an option of its own. @default 30000
   */
  readonly unavailableMs?: number | undefined;
  /**
   * 'frugal': while it waits, as for a completion, it sends a tenth of the commands, for servers that bill each, and
   * notices a lost notice later (see NotifierOptions). @default 'responsive'
   */
  readonly idle?: Idle | undefined;
  /**
   * How many shards the queue has, from 1 to 64: each is a queue in a hash slot of its own, so that a busy queue
   * is spread over a cluster. The same for all that use it. @default 1
   */
  readonly shards?: number | undefined;
  /**
   * Makes a span of each submission and of each wait for a completion: `new OpenTelemetry()` of
   * `@piecework/telemetry`. @default none
   */
  readonly telemetry?: Telemetry | undefined;
}

const pieceworkOptions: OptionTable = {
  ...adminOptions,
  idle: idleOption,
  telemetry: telemetryOption,
};

/**
 * Options of a request. With a `task` from `defineTask`, payloads and results have its types, and its schema, if it
 * has one, checks each payload.
 */
export type SubmitOptions<Payload, Result> = Omit<RequestOptions, 'task'> & {
  readonly task?: string | Task<Payload, Result, unknown> | undefined;
};

export interface HandleOptions<Result> {
  /** The task of the request; only for the types, not compared with the task that the request has in Redis. */
  // biome-ignore lint/suspicious/noExplicitAny: a task of any payload.
  readonly task?: string | Task<any, Result, any> | undefined;
}

const isName = option.name().fits;
const isTask = (task: unknown): boolean => {
  if (typeof task !== 'object' || task === null) return false;
  const { name, handler } = task as Partial<Task<unknown, unknown>>;
  return typeof handler === 'function' && isName(name);
};

const handleOptions: OptionTable = {
  task: option.custom(shape.either(isName, isTask), 'a task, or the name of one'),
};

/** An open request; `handle` waits for it and reads it. */
export type OpenHandle<Result, Payload = unknown> = {
  readonly handle: SubmittedRequest<Jsonify<Result>>;
} & OpenRequest<Payload>;

/**
 * Submits requests to one queue, waits for them and reads them: Producer, Notifier and Admin on one connection.
 *
 * ```ts
 * await using pw = new Piecework({ redis: 'redis://localhost' });
 * const request = await pw.submit(items, { limit: 50 });
 * const outcome = await request.completion();
 * for await (const { index, value } of request.results()) …
 * ```
 */
export class Piecework implements AsyncDisposable {
  readonly #connection: Connection;
  readonly #producer: Producer;
  readonly #notifier: Notifier;
  readonly #traced: Traced | undefined;
  /** Lists, counts and workers of the queue. */
  readonly admin: Admin;

  /** Connects at the first call. @throws InvalidOptionError */
  constructor(options: PieceworkOptions) {
    const checked = checkOptions<Required<Omit<PieceworkOptions, 'telemetry'>> & PieceworkOptions>(
      pieceworkOptions,
      options,
    );
    const { redis, unavailableMs, idle, telemetry, ...queue } = checked;
    this.#connection = Connection.open(redis, 'this Piecework object');
    this.#traced = telemetry && new Traced(telemetry, queue.queue, this.#connection);
    this.#producer = new Producer({ redis: this.#connection, ...queue });
    this.#notifier = new Notifier({ redis: this.#connection, unavailableMs, idle, ...queue });
    this.admin = new Admin({ redis: this.#connection, unavailableMs, ...queue });
  }

  /**
   * Submits all items as one request; resolves when the last is in. `created` of the handle says whether this call
   * made the request. With a `task` the items are its payloads.
   * @throws as Producer.submit
   */
  async submit<Payload = unknown, Result = unknown>(
    items: Items<NoInfer<Payload>>,
    options: SubmitOptions<Payload, Result> = {},
  ): Promise<SubmittedRequest<Jsonify<Result>>> {
    const { schema, plain } = taskOf(options);
    const source = schema ? await checkedItems(items, schema) : items;
    const named = this.#notifier.name();
    const submit = (trace?: TraceContext) =>
      this.#producer.submit(source, plain, named.channel, trace);
    const made = await (this.#traced ? this.#traced.submit(plain.task, submit) : submit());
    return this.#submitted(made, named);
  }

  /**
   * Opens a request, or joins the open one of this id (`joined`). With a `task`, what is appended are its
   * payloads. @throws as Producer.open
   */
  async open<Payload = unknown, Result = unknown>(
    options: SubmitOptions<Payload, Result> = {},
  ): Promise<OpenHandle<Result, Payload>> {
    const { schema, plain } = taskOf(options);
    const checked = schema && ((item: unknown, index: number) => check(schema, item, index));
    const begin = async (trace?: TraceContext) => {
      const open: OpenRequest<Payload> = await this.#producer.open(plain, checked, trace);
      const { id, generation, joined } = open;
      return { id, generation, created: !joined, open };
    };
    const made = await (this.#traced ? this.#traced.submit(plain.task, begin) : begin());
    return Object.assign(made.open, { handle: this.#submitted<Jsonify<Result>>(made) });
  }

  #submitted<Result>(
    made: { readonly id: string; readonly generation: number; readonly created: boolean },
    named?: NamedChannel,
  ): SubmittedRequest<Result> {
    // cure: only the call that made a request relies on the channel that it named
    const told = made.created ? named : undefined;
    return new SubmittedRequest<Result>(made, this.#notifier, this.admin, told, this.#traced);
  }

  /**
   * Checks once whether Redis can be reached and can serve Piecework; every submission does so too.
   * @throws ConnectionError · ServerError, whose code says why: TOO_OLD, EVICTING, CLUSTER, CLUSTER_DOWN, NO_DB,
   *   NO_RIGHT, or REDIS, as for a wrong password
   */
  check(): Promise<void> {
    return this.#connection.check();
  }

  /**
   * The handle of a request that any process submitted. With its `task` the results are typed. No I/O.
   * @throws InvalidOptionError
   */
  request<Result = unknown>(
    id: string,
    options: HandleOptions<Result> = {},
  ): RequestHandle<Jsonify<Result>> {
    checkOption('id', id, option.name());
    checkOptions(handleOptions, options);
    return new RequestHandle<Jsonify<Result>>(
      id,
      this.#notifier,
      this.admin,
      0,
      undefined,
      this.#traced,
    );
  }

  /**
   * What happens in the queue, from now on or behind the event of `cursor`: each request that ends, attempts that fail,
   * and counts. Polled; events of one request come live from its handle. @throws as Admin.events
   */
  events(options: QueueEventsOptions = {}): AsyncGenerator<QueueEvent> {
    return this.admin.events(options);
  }

  /**
   * Closes what this object opened; a client that was passed in stays open. Waits for at most 5 s until items that
   * were appended to open requests are in.
   * @throws as OpenRequest.close, when all is closed; ClosedError when items are not in after 5 s
   */
  async close(): Promise<void> {
    const [flushed] = await Promise.allSettled([this.#producer.closeOpen()]);
    const parts = [this.#producer, this.#notifier, this.admin];
    const stopped = Promise.all(parts.map((part) => part.close()));
    await this.#connection.closeSoon(stopped);
    if (flushed.status === 'rejected') throw flushed.reason;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** @throws InvalidOptionError when the options are no object */
function taskOf<Payload, Result>(
  options: SubmitOptions<Payload, Result>,
): {
  schema: StandardSchemaV1 | undefined;
  plain: RequestOptions;
} {
  const { task, ...rest } = copyOf(options);
  if (task === undefined) return { schema: undefined, plain: rest };
  if (typeof task === 'object' && task !== null) {
    checkOptions(handleOptions, { task });
    return {
      schema: task.schema as StandardSchemaV1 | undefined,
      plain: { task: task.name, ...rest },
    };
  }
  return { schema: undefined, plain: { task, ...rest } };
}

/** A copy; reading options may throw. @throws InvalidOptionError */
function copyOf<Options extends object>(options: Options): Options {
  try {
    if (typeof options === 'object' && options && !Array.isArray(options)) return { ...options };
  } catch {}
  throw new InvalidOptionError('options', options, 'an object');
}
