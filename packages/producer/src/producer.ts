import {
  Agenda,
  ClosedError,
  Connection,
  ConnectionError,
  checkOptions,
  encodePayload,
  type OptionTable,
  option,
  pause,
  QueueCommands,
  type RedisInput,
  RequestCommands,
  RequestExistsError,
  SourceError,
} from '@piecework/protocol';
import { nanoid } from 'nanoid';
import { z } from 'zod';
import { optionsDigest } from './digest.js';
import { OpenRequest } from './open-request.js';
import { type CheckedOptions, type RequestOptions, requestOptions } from './options.js';
import { type Items, Source, SourceFailure } from './source.js';

export interface ProducerOptions {
  /** Where Redis is, or a connection that is shared. A client that is passed in is never closed. */
  readonly redis: RedisInput | Connection;
  /** @default 'req' */
  readonly queue?: string;
}

export const producerOptions: OptionTable = {
  redis: option.custom(
    z.any().refine((v) => v !== undefined && v !== null),
    'where Redis is',
  ),
  queue: option.name('req'),
};

/** A request whose items are all in. */
export interface Submitted {
  readonly id: string;
  readonly generation: number;
  /** How many sub-requests this submission added. */
  readonly total: number;
}

/** How long a close waits for the server, in ms. */
const CLOSE_MS = 5_000;
/** How often a submission starts over when its intent was given up before it was used. */
const VOID_TRIES = 5;

/**
 * Submits requests to one queue. The order of every submission is intent (queue side), create,
 * append, push (queue side), seal: cut anywhere, the agenda finds what is left.
 */
export class Producer implements AsyncDisposable {
  readonly #connection: Connection;
  readonly #ownsConnection: boolean;
  readonly #queue: QueueCommands;
  readonly #agenda: Agenda;
  readonly #open = new Set<OpenRequest>();
  #closed = false;

  /** @throws InvalidOptionError */
  constructor(options: ProducerOptions) {
    const { redis, queue } = checkOptions<Required<ProducerOptions>>(producerOptions, options);
    this.#ownsConnection = !(redis instanceof Connection);
    this.#connection = redis instanceof Connection ? redis : Connection.open(redis);
    this.#queue = new QueueCommands(this.#connection, queue);
    this.#agenda = new Agenda(this.#connection, this.#queue);
  }

  /**
   * Submits all items as one request; resolves when the last is in and the request is sealed.
   * The source is read no faster than Redis takes it, and no faster than `window` allows.
   * @throws InvalidOptionError, PayloadError before anything is written · RequestExistsError ·
   *   SourceError when the source threw · SealedError, DroppedError when somebody cancelled or
   *   dropped it meanwhile · ConnectionError, ServerError
   */
  async submit<Item>(items: Items<Item>, options: RequestOptions = {}): Promise<Submitted> {
    const checked = this.#check(options);
    const encode = (item: unknown) => encodePayload(item, checked.maxPayloadBytes);
    const source = new Source(items, encode, checked.signal);
    try {
      // An array can be looked through before anything is written; of a stream, the first item can.
      if (Array.isArray(items)) for (const item of items) encode(item);
      const first = await source.first();
      const request = await this.#bringUp(checked, 'submit');
      return await this.#fill(request, first, source, checked);
    } finally {
      source.release();
    }
  }

  /** Feeds the source into a new request and seals it; or ends that as the options say. */
  async #fill(
    request: OpenRequest,
    first: string | undefined,
    source: Source,
    { onSourceError, signal }: CheckedOptions,
  ): Promise<Submitted> {
    const abort = () => request.abort(signal?.reason);
    signal?.addEventListener('abort', abort, { once: true });
    if (signal?.aborted) abort();
    try {
      let payload = first;
      while (payload !== undefined) {
        await request.appendEncoded(payload);
        payload = await source.next();
      }
      await request.flush();
      const total = request.appended;
      await request.seal();
      return { id: request.id, generation: request.generation, total };
    } catch (error) {
      if (onSourceError === 'cancel') await request.cancel().catch(() => {});
      // What was read before the source failed is kept.
      else if (!signal?.aborted) await request.flush().catch(() => {});
      throw error instanceof SourceFailure
        ? new SourceError(request.id, onSourceError, error.cause)
        : error;
    } finally {
      signal?.removeEventListener('abort', abort);
      request.close();
    }
  }

  /**
   * Opens a request to which items are appended until it is sealed. If one of this id is open with
   * the same options, it is joined: several processes may append to one request.
   * @throws InvalidOptionError · RequestExistsError · ConnectionError, ServerError
   */
  async open(options: RequestOptions = {}): Promise<OpenRequest> {
    return this.#bringUp(this.#check(options), 'open');
  }

  /** Stops renewing what is open, and closes the connection if it is ours. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const request of this.#open) request.close();
    const stopped = this.#agenda.stop();
    if (this.#ownsConnection) await this.#closeConnection(stopped);
    else await stopped;
  }

  /** Does not wait long for a server that does not answer; whatever is under way fails then. */
  async #closeConnection(stopped: Promise<void>): Promise<void> {
    const { client } = this.#connection;
    const closed = new AbortController();
    const closing = stopped.then(() => this.#connection.close()).finally(() => closed.abort());
    await pause(client.status === 'reconnecting' ? 0 : CLOSE_MS, closed.signal);
    if (!closed.signal.aborted) this.#connection.cut();
    await closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #check(options: RequestOptions): CheckedOptions {
    if (this.#closed) throw new ClosedError('producer');
    return checkOptions<CheckedOptions>(requestOptions, options);
  }

  async #bringUp(options: CheckedOptions, how: 'submit' | 'open'): Promise<OpenRequest> {
    await this.#connection.check();
    const id = options.id ?? nanoid();
    const commands = new RequestCommands(this.#connection, id);
    const owner = nanoid(12);
    const digest = optionsDigest(this.#queue.keys.queue, options);
    const fields = [
      'queue',
      this.#queue.keys.queue,
      'priority',
      options.priority,
      'limit',
      options.limit,
      'task',
      options.task ?? '',
      'attempts',
      1,
      'maxCrashes',
      options.maxCrashes,
      'window',
      options.window,
      'results',
      options.results,
      'retentionMs',
      options.retentionMs,
      'toleratedFailures',
      0,
      'digest',
      digest,
      'onProducerLost',
      options.onProducerLost,
      'metadata',
      options.metadata === undefined ? '' : JSON.stringify(options.metadata),
    ];
    for (let i = 0; i < VOID_TRIES; i += 1) {
      const generation = await this.#queue.intent(id);
      const created = await commands.create(generation, owner, options.producerLeaseMs, fields);
      if (created.verdict === 'created') return this.#opened(id, generation, owner, options);
      if (created.verdict === 'exists') {
        const { status } = created;
        if (created.generation !== generation) await this.#queue.finish(id, generation, 'gone');
        if (how === 'open' && status === 'open' && created.generation === generation) {
          if (created.digest === digest) return this.#opened(id, generation, owner, options);
          throw new RequestExistsError(id, status, 'it is open with other options');
        }
        throw new RequestExistsError(id, status);
      }
      // Given up before it was used, as when this process stood still in between.
      await this.#queue.finish(id, generation, 'gone');
    }
    throw new ConnectionError(`request ${id}: its intent was given up ${VOID_TRIES} times`);
  }

  #opened(id: string, generation: number, producer: string, options: CheckedOptions): OpenRequest {
    const parts = { id, generation, producer, options };
    const request = new OpenRequest(this.#connection, this.#queue, parts, (closed) => {
      this.#open.delete(closed);
      if (this.#open.size === 0) void this.#agenda.stop();
    });
    this.#open.add(request);
    this.#agenda.start();
    return request;
  }
}
