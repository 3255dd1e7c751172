import {
  Connection,
  checkOptions,
  encodePayload,
  IndeterminateError,
  LostError,
  type OptionTable,
  onAbort,
  option,
  type RedisInput,
  SealedError,
  Shards,
  type SharedConnection,
  shape,
  shardsOption,
  type TraceContext,
} from '@piecework/protocol';
import { nanoid } from 'nanoid';
import { submissionName } from './create/digest.js';
import { alreadyThere, otherItems } from './create/idempotency.js';
import { newId } from './create/new-id.js';
import type { CheckedOptions, Dedupe, RequestOptions } from './create/options.js';
import { type Prepared, PreparedOptions } from './create/prepared-options.js';
import { RetryableNames } from './create/retryable-names.js';
import { smallOf } from './create/small.js';
import {
  closedError,
  type ProducerContext,
  patienceOf,
  reasonOf,
  Submission,
  type Submitted,
} from './create/submission.js';
import { KnownItems } from './items/known-items.js';
import { type Items, isArray, Source } from './items/source.js';
import { fill } from './open/fill.js';
import type { ItemCheck, OpenRequest } from './open/open-request.js';
import { OpenRequests } from './open/open-requests.js';

export interface ProducerOptions {
  /** Where Redis is, or a connection that is shared. A client that is passed in is never closed. */
  readonly redis: RedisInput | SharedConnection;
  /** Name of the queue. @default 'req' */
  readonly queue?: string | undefined;
  /** How many shards the queue has, from 1 to 64: the same for all that use it. @default 1 */
  readonly shards?: number | undefined;
}

export const producerOptions: OptionTable = {
  redis: option.custom(shape.given, 'where Redis is'),
  queue: option.name('req'),
  shards: shardsOption,
};

/** Begins to read the items, from the first one on. */
type Begin = () => Promise<{ readonly first: string | undefined; readonly source: Source }>;

/** How often an array is submitted when the server loses the request meanwhile. */
const LOST_TRIES = 10;

/**
 * Submits requests to one queue. The order of every submission is intent (queue side), create,
 * append, push (queue side), seal: if it is cut off anywhere, the agenda finds what is left.
 */
export class Producer implements AsyncDisposable {
  readonly #connection: Connection;
  readonly #ownsConnection: boolean;
  readonly #context: ProducerContext;
  readonly #shards: Shards;
  readonly #open: OpenRequests;
  readonly #closing = new AbortController();
  readonly #retryable = new RetryableNames();
  readonly #prepared: PreparedOptions;

  /** Connects at the first call. @throws InvalidOptionError */
  constructor(options: ProducerOptions) {
    const { redis, queue, shards } = checkOptions<Required<ProducerOptions>>(
      producerOptions,
      options,
    );
    const connection = Connection.of(redis);
    this.#ownsConnection = connection !== redis;
    this.#connection = connection;
    this.#shards = new Shards(connection, queue, shards);
    this.#context = { connection, shards: this.#shards, closing: this.#closing.signal };
    this.#open = new OpenRequests(this.#context);
    this.#prepared = new PreparedOptions(queue);
  }

  /**
   * Submits all items as one request; resolves when the last is in and the request is sealed (and as
   * durable as `durability` asks). The source is read no faster than Redis takes the items, and no faster
   * than `window` allows.
   *
   * Each call is tried for `unavailableMs`. After an error that is `retryable`, call it again with the same id
   * (the error's `requestId`, if it has one), options and items: that gives the same request, with each item in it
   * once.
   * - Items in an array are recognised by their content, from any process, for as long as the request exists;
   *   the first submission may even still be under way.
   * - For any other source the caller has to give the same items again, from the start. When all of them are in,
   *   every caller gets the request with its total. Before that, only this Producer continues it; elsewhere it
   *   is a RequestExistsError, unless both submissions name the same `source`.
   *
   * `notify` names a shard channel: when the request ends, a message about it is published there too. `trace`: the
   * context that workers get with the request, if this submission creates it.
   *
   * Other options under the same id, or other items of an array, are a RequestExistsError that says what
   * differs. `dedupe` finds the id by a key.
   *
   * Until it is submitted again the request stays open; its lease ends after `producerLeaseMs`, and
   * `onProducerLost` decides what becomes of it. A request that ended so cannot be continued
   * (RequestExistsError). After a drop, or when its retention has ended, the id is free for a new one.
   * @throws InvalidOptionError, PayloadError before anything is written · RequestExistsError ·
   *   SourceError when the source threw · SealedError, DroppedError when somebody cancelled or
   *   dropped it meanwhile · ServerError, ConnectionError: not carried out · IndeterminateError: it
   *   may have been · DurabilityError: it was, but is not confirmed to be durable · LostError: the server
   *   lost what it had acknowledged while the submission was under way (of an array, again and again)
   */
  async submit<Item>(
    items: Items<Item>,
    options: RequestOptions = {},
    notify = '',
    trace?: TraceContext,
  ): Promise<Submitted> {
    const prepared = this.#prepare(options, trace);
    const { options: checked, digest } = prepared;
    const encode = (item: unknown, index: number) =>
      encodePayload(item, checked.maxPayloadBytes, index);
    // An array can be encoded before anything is written; of a stream, the first item can.
    const known = isArray(items) ? new KnownItems(items, encode) : undefined;
    let source: Source | undefined;
    const end = () => source?.end(closedError(this.#connection));
    const unlisten = known ? undefined : onAbort(this.#closing.signal, end);
    const begin: Begin = async () => {
      source?.release();
      source = new Source(known ?? items, known ? encoded : encode, checked.signal);
      return { first: await source.first(), source };
    };
    try {
      // A stream is begun once, before anything is written; an array where its items are not sent in one call.
      const begun = known && !checked.signal?.aborted ? undefined : await begin();
      const small = known && smallOf(known, checked.window);
      const name = known ? submissionName(digest, small ?? known) : nameOfSource(digest, checked);
      const submission = await this.#submissionOf(prepared, name, small, notify);
      const { id, owner } = submission.asked;
      for (let tries = 1; ; tries += 1) {
        try {
          const submitted = await this.#submit(submission, begun ? async () => begun : begin);
          this.#retryable.forget(id);
          return submitted;
        } catch (error) {
          this.#retryable.noteFailure(id, owner, error);
          if (!known || !(error instanceof LostError) || tries === LOST_TRIES) throw error;
        }
        // The server lost it while it was under way; all items are at hand, and the same name adds none twice.
      }
    } finally {
      unlisten?.();
      source?.release();
    }
  }

  async #submissionOf(
    { id: givenId, options, digest }: Prepared,
    name: string | undefined,
    small: readonly string[] | undefined,
    notify: string,
  ): Promise<Submission> {
    const ownId = givenId ?? newId();
    const id = options.dedupe ? await this.#idOfKey(options.dedupe, options, ownId) : ownId;
    const isNewId = givenId === undefined && id === ownId;
    return new Submission(this.#context, {
      id,
      isNewId,
      digest,
      options,
      notify,
      small,
      owner: name ?? this.#retryable.get(id) ?? nanoid(12),
      named: name !== undefined,
      // Another call with the same key may make the request under an id that this call made up.
      call: isNewId && !options.dedupe ? undefined : nanoid(12),
    });
  }

  async #submit(submission: Submission, begin: Begin): Promise<Submitted> {
    const { id, owner, options, small } = submission.asked;
    const { generation, created, found, allIn } = await submission.create();
    if (found) return submission.foundAgain(found, created);
    if (allIn && small)
      return submission.acknowledge(submission.sealOf(generation), small.length, created);
    try {
      const { first, source } = await begin();
      const request = this.#open.open(generation, submission.asked);
      await fill(request, first, source, options);
      return { id, generation, total: request.appended, created };
    } catch (error) {
      if (!(error instanceof SealedError)) throw error;
      // Perhaps sealed by an earlier call of this same submission that arrived meanwhile.
      const { found: now } = await submission.create();
      if (now?.sealedBy !== owner || now.generation !== generation) throw error;
      return submission.foundAgain(now, created);
    }
  }

  /**
   * Opens a request to which items are appended until it is sealed. An open request of this id with the same
   * options is joined: several processes may append to one request, and calling again is safe.
   * `check` gets each item before it is added.
   *
   * With a `source` only the request of this source is joined: the caller appends its items from the start again,
   * and those that are in already are skipped. If all are in, also when the request has ended since, `allIn` of
   * what is returned is true.
   * @throws InvalidOptionError · RequestExistsError · ServerError, ConnectionError · IndeterminateError
   */
  async open(
    options: RequestOptions = {},
    check?: ItemCheck,
    trace?: TraceContext,
  ): Promise<OpenRequest> {
    const { id: ownId = newId(), options: checked, digest } = this.#prepare(options, trace);
    const { dedupe } = checked;
    const id = dedupe ? await this.#idOfKey(dedupe, checked, ownId) : ownId;
    const name = nameOfSource(digest, checked);
    const asked = { id, owner: name ?? nanoid(12), digest, options: checked, named: !!name };
    if (name !== undefined) {
      const submission = new Submission(this.#context, { ...asked, call: nanoid(12) });
      return this.#openOfSource(submission, check);
    }
    const submission = new Submission(this.#context, asked);
    const { generation, found } = await submission.create();
    if (found) {
      await submission.expectSameOptions(found);
      if (found.status !== 'open' || found.generation !== generation)
        throw alreadyThere(asked, found.status);
    }
    return this.#open.openHandle(generation, asked, { joined: found !== undefined, check });
  }

  /** Opens the request of a source, in whichever process: a new one, or what there is of it. */
  async #openOfSource(submission: Submission, check?: ItemCheck): Promise<OpenRequest> {
    const { id, owner, options } = submission.asked;
    const { generation, found, created } = await submission.create();
    if (found) {
      const { status, sealedBy } = found;
      await submission.expectSameOptions(found);
      if (status === 'open' && sealedBy !== owner) throw otherItems(submission.asked, status);
      // An open one of ours is being redriven, and the redrive seals it.
      if (status !== 'open') {
        await submission.foundAgain(found, created);
        this.#retryable.forget(id);
      }
      return this.#open.open(found.generation, submission.asked, { joined: !created, allIn: true });
    }
    if (created) return this.#open.openHandle(generation, submission.asked, { check });
    const { request } = submission.site();
    const sent = `sent:${owner}`;
    const [fields] = await patienceOf(this.#context, id, options).call(() =>
      // Its lease may have ended: renewed before a tick notices.
      Promise.all([request.fields(sent), request.renewProducer(generation)]),
    );
    const known = Number(fields[sent] || 0);
    return this.#open.openHandle(generation, submission.asked, { joined: true, check, known });
  }

  /**
   * Ends submissions under way, closes open requests, and the connection unless it was passed in.
   * @throws as closeOpen, when all is closed
   */
  async close(): Promise<void> {
    const [flushed] = await Promise.allSettled([this.closeOpen()]);
    const closed = this.#open.close();
    if (this.#ownsConnection) await this.#connection.closeSoon(closed);
    else await closed;
    if (flushed.status === 'rejected') throw flushed.reason;
  }

  /**
   * The first half of a close: refuses new calls, ends submissions under way, and closes open requests, which
   * waits for at most 5 s until the appended items are in.
   * @throws as OpenRequest.close, ClosedError after 5 s; an AggregateError if several fail
   */
  async closeOpen(): Promise<void> {
    this.#closing.abort();
    await this.#open.flush();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #prepare(options: RequestOptions, trace: TraceContext | undefined): Prepared {
    if (this.#closing.signal.aborted) throw closedError(this.#connection);
    return this.#prepared.of(options, trace);
  }

  /** The id that a key of deduplication has; it gets `id` if it has none. */
  async #idOfKey({ key, periodMs }: Dedupe, options: CheckedOptions, id: string): Promise<string> {
    const keyMs = periodMs ?? options.retentionMs;
    const patience = patienceOf(this.#context, id, options);
    try {
      await patience.reach();
      // In the shard of the key: every call with this key asks there, whatever id it has made up.
      return await patience.call(() => this.#shards.of(key).dedupe(key, id, keyMs));
    } catch (error) {
      // There is no request yet. A repetition goes by the key: the key may not have this id.
      const why = error instanceof IndeterminateError ? error.cause : error;
      throw reasonOf(this.#context, id, options, why);
    }
  }
}

/** The name of a submission whose items are known by that of their source. */
const nameOfSource = (digest: string, { source }: CheckedOptions): string | undefined =>
  source === undefined ? undefined : submissionName(digest, [`source ${source}`]);

const encoded = (item: unknown): string => item as string;
