import {
  AbortError,
  Agenda,
  ClosedError,
  Connection,
  checkOptions,
  encodePayload,
  IndeterminateError,
  LostError,
  type OptionTable,
  option,
  Patience,
  PieceworkError,
  type QueueCommands,
  type RedisInput,
  RequestCommands,
  SealedError,
  Shards,
  shardsOption,
} from '@piecework/protocol';
import { nanoid } from 'nanoid';
import { z } from 'zod';
import { type BroughtUp, bringUp, type Found } from './bring-up.js';
import { optionsDigest, submissionName } from './digest.js';
import { checkDurability, confirmDurability } from './durability.js';
import { fill } from './fill.js';
import { KnownItems } from './known-items.js';
import { type ItemCheck, OpenRequest } from './open-request.js';
import { type CheckedOptions, checkRequestOptions, type RequestOptions } from './options.js';
import {
  type Asked,
  alreadyThere,
  expectSame,
  expectSameOptions,
  otherItems,
} from './same-again.js';
import { type SealOf, type Site, sealIn } from './seal-in.js';
import { announce, firstNumber, smallOf } from './small.js';
import { type Items, isArray, Source } from './source.js';

export interface ProducerOptions {
  /** Where Redis is, or a connection that is shared. A client that is passed in is never closed. */
  readonly redis: RedisInput | Connection;
  /** @default 'req' */
  readonly queue?: string | undefined;
  /** How many shards the queue has, from 1 to 64: the same for all who use it. @default 1 */
  readonly shards?: number | undefined;
}

export const producerOptions: OptionTable = {
  redis: option.custom(
    z.any().refine((v) => v !== undefined && v !== null),
    'where Redis is',
  ),
  queue: option.name('req'),
  shards: shardsOption,
};

/** A request whose items are all in. */
export interface Submitted {
  readonly id: string;
  readonly generation: number;
  /** How many sub-requests this submission added. */
  readonly total: number;
  /**
   * Whether this call made the request. False: it was there already, under the same id or key of
   * deduplication, whoever submitted it; be it an earlier call for the same that failed half-way.
   */
  readonly created: boolean;
}

/** What is submitted, and in which way. */
interface Submission extends Asked {
  /** All its items, when they are few and known. */
  readonly small?: readonly string[] | undefined;
  /** Whether the id was made here, so that nothing has it yet. */
  readonly isNewId?: boolean;
  /** Names this call: of several that ask for the same, the request keeps which one made it. */
  readonly call?: string | undefined;
}

/** A shard of the queue, with what is open there; its agenda is looked at as long as anything is. */
interface Desk {
  readonly queue: QueueCommands;
  readonly agenda: Agenda;
  readonly open: Set<OpenRequest>;
}

/** How often an array is submitted when the server loses the request meanwhile. */
const LOST_TRIES = 10;

/** How long a close waits until what was appended is in, in ms. */
const FLUSH_MS = 5_000;

/** How many submissions of streams are remembered that may be asked for again. */
const UNSURE_MAX = 1_000;

/**
 * Submits requests to one queue. The order of every submission is intent (queue side), create,
 * append, push (queue side), seal: cut anywhere, the agenda finds what is left.
 */
export class Producer implements AsyncDisposable {
  readonly #connection: Connection;
  readonly #ownsConnection: boolean;
  readonly #shards: Shards;
  readonly #desks: readonly Desk[];
  readonly #closing = new AbortController();
  /** What callers have open; of a submission under way nobody else has the request. */
  readonly #handles = new Set<OpenRequest>();
  /** Streams whose submission failed and may be asked for again: id → name of the submission. */
  readonly #unsure = new Map<string, string>();

  /** @throws InvalidOptionError */
  constructor(options: ProducerOptions) {
    const { redis, queue, shards } = checkOptions<Required<ProducerOptions>>(
      producerOptions,
      options,
    );
    this.#ownsConnection = !(redis instanceof Connection);
    const connection = redis instanceof Connection ? redis : Connection.open(redis);
    this.#connection = connection;
    this.#shards = new Shards(connection, queue, shards);
    this.#desks = this.#shards.all.map((shard) => ({
      queue: shard,
      agenda: new Agenda(connection, shard),
      open: new Set(),
    }));
  }

  /**
   * Submits all items as one request; resolves when the last is in and the request is sealed (and as
   * durable as `durability` asks). The source is read no faster than Redis takes it, and no faster
   * than `window` allows.
   *
   * Each call is tried for `unavailableMs`. Whoever then gets an error that is `retryable` may ask
   * again with the same id (an error that knows it has it as `requestId`), options and items, and gets
   * the same request, each item in it once, no item twice:
   * - items given as an array are recognised by their content, from any process, for as long as the
   *   request lives or is retained; the first submission may even still be under way;
   * - of any other source the word of the caller is taken that it gives the same items again, from
   *   the start. Once all of them are in, it is returned with its total, to anybody; before, only this
   *   Producer goes on with it, and elsewhere it is a RequestExistsError, unless both name the same `source`.
   * Other options under the same id, or other items of an array, are a RequestExistsError that says what
   * differs. `dedupe` finds the id by a key.
   * Until it is asked again the request stays as it is, open; its lease ends after `producerLeaseMs`
   * and `onProducerLost` says what becomes of it. What was ended so is not taken up again
   * (RequestExistsError). After a drop, or when its retention is over, it is a new one.
   * @throws InvalidOptionError, PayloadError before anything is written · RequestExistsError ·
   *   SourceError when the source threw · SealedError, DroppedError when somebody cancelled or
   *   dropped it meanwhile · ServerError, ConnectionError: not carried out · IndeterminateError: it
   *   may have been · DurabilityError: it was, but is not confirmed to be durable · LostError: the server
   *   lost what it had acknowledged while the submission was under way (of an array, again and again)
   */
  async submit<Item>(items: Items<Item>, options: RequestOptions = {}): Promise<Submitted> {
    const checked = this.#check(options);
    const encode = (item: unknown, index: number) =>
      encodePayload(item, checked.maxPayloadBytes, index);
    // An array can be looked through before anything is written; of a stream, the first item can.
    const known = isArray(items) ? new KnownItems(items, encode) : undefined;
    const open = () => new Source(known ?? items, known ? encoded : encode, checked.signal);
    let source = open();
    try {
      const digest = optionsDigest(this.#shards.queue, checked);
      const named = known && submissionName(digest, known);
      let first = await source.first();
      const newId = nanoid();
      const id = await this.#idOf(checked, newId);
      const sourced = ofSource(digest, checked);
      const owner = named ?? sourced ?? this.#unsure.get(id) ?? nanoid(12);
      const small = known && smallOf(known, checked.window);
      const isNewId = id === newId;
      const submission = {
        ...{ id, isNewId, owner, digest, options: checked, small },
        named: (named ?? sourced) !== undefined,
        // Whoever asks under the same key may make the request of an id of ours.
        call: isNewId && !checked.dedupe ? undefined : nanoid(12),
      };
      for (let tries = 1; ; tries += 1) {
        try {
          return await this.#submit(submission, first, source);
        } catch (error) {
          this.#remember(id, owner, error);
          if (!known || !(error instanceof LostError) || tries === LOST_TRIES) throw error;
        }
        // The server lost it while it was under way; all items are at hand, and the same name adds none twice.
        source.release();
        source = open();
        first = await source.first();
      }
    } finally {
      source.release();
    }
  }

  /** What of a submission fails so that it may be asked for again keeps its name. */
  #remember(id: string, owner: string, error: unknown): void {
    this.#unsure.delete(id);
    if (!(error instanceof PieceworkError && error.retryable)) return;
    this.#unsure.set(id, owner);
    for (const oldest of this.#unsure.keys()) {
      if (this.#unsure.size <= UNSURE_MAX) return;
      this.#unsure.delete(oldest);
    }
  }

  async #submit(
    submission: Submission,
    first: string | undefined,
    source: Source,
  ): Promise<Submitted> {
    const { id, owner, options, small } = submission;
    const brought = await this.#bringUp(submission, true);
    const { generation, created } = brought;
    if (brought.found) return this.#foundAgain(submission, brought.found, created);
    if (brought.allIn && small) {
      const total = small.length;
      return this.#isIn(submission, { ...sealOf(submission, generation), total, created });
    }
    try {
      const request = this.#opened(generation, submission);
      await fill(request, first, source, options);
      this.#unsure.delete(id);
      return { id, generation, total: request.appended, created };
    } catch (error) {
      if (!(error instanceof SealedError)) throw error;
      // Perhaps by an earlier call of this very submission, which arrived meanwhile.
      const { found } = await this.#bringUp(submission);
      if (found?.sealedBy !== owner || found.generation !== generation) throw error;
      return this.#foundAgain(submission, found, created);
    }
  }

  /** A request that exists and is not open for us: submitted by us before, or somebody else's. */
  async #foundAgain(submission: Submission, found: Found, created: boolean): Promise<Submitted> {
    await expectSame(this.#connection, this.#queueOf(submission), submission, found);
    const { generation, sealedBy, sent, total, status } = found;
    const ours = sealedBy === submission.owner;
    const all = ours ? sent - firstNumber(submission.small) : total;
    const seal = { generation, producer: sealedBy, sent, total: all, created };
    if (status === 'complete') return this.#isIn(submission, seal);
    // Whoever asks again heals what the queue side has lost: where the request is, also when the number of
    // shards was another one then.
    const { request } = this.#site(submission);
    const { queue } = await this.#patience(submission.id, submission.options).call(() =>
      request.fields('queue'),
    );
    const site = this.#site(submission, queue);
    await sealIn(site, seal);
    return this.#isIn(submission, seal, site);
  }

  #site({ id, options }: Submission, named = ''): Site {
    const request = new RequestCommands(this.#connection, id);
    const patience = this.#patience(id, options);
    const queue = named ? this.#shards.named(named) : this.#shards.of(id);
    return { connection: this.#connection, queue, request, patience };
  }

  /** All of a submission is in, and sealed. */
  async #isIn(
    submission: Submission,
    { total, created, ...seal }: SealOf & Pick<Submitted, 'total' | 'created'>,
    site = this.#site(submission),
  ): Promise<Submitted> {
    const { id, options } = submission;
    await confirmDurability(site, seal, options.durability);
    this.#unsure.delete(id);
    return { id, generation: seal.generation, total, created };
  }

  /**
   * Opens a request to which items are appended until it is sealed. If one of this id is open with
   * the same options, it is joined: several processes may append to one request, and asking again
   * is safe. `check` sees each item before it is added.
   *
   * With a `source` only its producer is joined: items are appended from the start again, and those that
   * are in already are passed over. Where all are, also when it has ended since, the answer is `allIn`.
   * @throws InvalidOptionError · RequestExistsError · ServerError, ConnectionError · IndeterminateError
   */
  async open(options: RequestOptions = {}, check?: ItemCheck): Promise<OpenRequest> {
    const checked = this.#check(options);
    const id = await this.#idOf(checked);
    const digest = optionsDigest(this.#shards.queue, checked);
    const sourced = ofSource(digest, checked);
    const asked = { id, owner: sourced ?? nanoid(12), digest, options: checked, named: !!sourced };
    if (sourced !== undefined) return this.#openAgain({ ...asked, call: nanoid(12) }, check);
    const { generation, found } = await this.#bringUp(asked);
    if (found) {
      await expectSameOptions(this.#connection, this.#queueOf(asked), asked, found);
      if (found.status !== 'open' || found.generation !== generation)
        throw alreadyThere(asked, found.status);
    }
    return this.#handedOut(this.#opened(generation, asked, { joined: found !== undefined, check }));
  }

  /** Opens what one producer appends, whichever process it is in: a new request, or what there is of it. */
  async #openAgain(submission: Submission, check?: ItemCheck): Promise<OpenRequest> {
    const { id, owner } = submission;
    const { generation, found, created } = await this.#bringUp(submission);
    if (found) {
      const { status, sealedBy } = found;
      await expectSameOptions(this.#connection, this.#queueOf(submission), submission, found);
      const others = status === 'open' && sealedBy !== owner;
      if (others) throw otherItems(submission, status);
      // One that is open again is being redriven, and sealed by whoever does that.
      if (status !== 'open') await this.#foundAgain(submission, found, created);
      return this.#opened(found.generation, submission, { joined: !created, allIn: true });
    }
    if (created) return this.#handedOut(this.#opened(generation, submission, { check }));
    const { request } = this.#site(submission);
    const sent = `sent:${owner}`;
    const [fields] = await this.#patience(id, submission.options).call(() =>
      // Its lease may have ended: renewed before anybody here looks.
      Promise.all([request.fields(sent), request.keepOpen(generation)]),
    );
    const known = Number(fields[sent] || 0);
    return this.#handedOut(this.#opened(generation, submission, { joined: true, check, known }));
  }

  /**
   * Ends what is being submitted, closes what is open, and the connection if it is ours.
   * @throws as closeOpen, when all is closed
   */
  async close(): Promise<void> {
    const [flushed] = await Promise.allSettled([this.closeOpen()]);
    const stopped = Promise.all(this.#desks.map(({ agenda }) => agenda.stop()));
    if (this.#ownsConnection) await this.#connection.closeSoon(stopped);
    else await stopped;
    if (flushed.status === 'rejected') throw flushed.reason;
  }

  /**
   * The first half of a close: refuses what comes, ends what is being submitted, and closes what is open, which
   * waits for 5 s at most until what was appended is in.
   * @throws as OpenRequest.close, ClosedError after 5 s; an AggregateError of what several throw
   */
  async closeOpen(): Promise<void> {
    this.#closing.abort();
    const handles = [...this.#handles];
    for (const { open } of this.#desks)
      for (const request of open) if (!this.#handles.has(request)) request.leave();
    const giveUp = () => {
      for (const request of handles) request.leave();
    };
    const timer = setTimeout(giveUp, FLUSH_MS);
    const closed = await Promise.allSettled(handles.map((request) => request.close()));
    clearTimeout(timer);
    const errors = closed.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
    if (errors.length > 1) throw new AggregateError(errors, `${errors[0].message}, and others`);
    if (errors.length > 0) throw errors[0];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #check(options: RequestOptions): CheckedOptions {
    if (this.#closing.signal.aborted) throw new ClosedError('producer');
    return checkRequestOptions(options);
  }

  /** Under which id it goes: its own, the one that its key of deduplication stands for, or a new one. */
  async #idOf(checked: CheckedOptions, newId = nanoid()): Promise<string> {
    const { id = newId, dedupe, ...options } = checked;
    if (!dedupe) return id;
    const { key, periodMs = options.retentionMs } = dedupe;
    const patience = this.#patience(id, options);
    await patience.reach();
    try {
      // In the shard of the key: whoever asks under it asks there, whatever id they have made.
      return await patience.call(() => this.#shards.of(key).dedupe(key, id, periodMs));
    } catch (error) {
      // There is no request yet: it is asked for again by its key, not by an id that the key may not have.
      throw this.#ended(id, options, error instanceof IndeterminateError ? error.cause : error);
    }
  }

  /** What a call is told that failed: that it was ended from here, if it was. */
  #ended(id: string, { signal }: Pick<CheckedOptions, 'signal'>, error: unknown): unknown {
    if (this.#closing.signal.aborted) return new ClosedError('producer');
    return signal?.aborted ? new AbortError(`submission of ${id}`, error) : error;
  }

  #patience(
    id: string,
    { unavailableMs, signal }: Pick<CheckedOptions, 'unavailableMs' | 'signal'>,
  ) {
    const signals = [this.#closing.signal, signal];
    return new Patience(this.#connection, id, { forMs: unavailableMs, signals });
  }

  /** `atOnce`: with all its items and the seal, if they are few. */
  async #bringUp(submission: Submission, atOnce = false): Promise<BroughtUp> {
    const { id, options } = submission;
    const commands = new RequestCommands(this.#connection, id);
    const patience = this.#patience(id, options);
    await patience.reach();
    if (options.durability !== 'none')
      await patience.call(() => checkDurability(this.#connection, commands, options.durability));
    try {
      const { isOneServer: oneServer } = this.#connection;
      const parts = { ...submission, patience, atOnce, oneServer };
      const queue = this.#shards.of(id);
      const { epoch } = this.#connection;
      const brought = await bringUp(this.#connection, queue, commands, parts);
      const { generation, allIn } = brought;
      if (!allIn) return brought;
      const site = { connection: this.#connection, queue, request: commands, patience };
      const sure = await announce(site, epoch, generation, allIn);
      if (!sure || this.#connection.epoch !== epoch)
        await sealIn(site, sealOf(submission, generation));
      return brought;
    } catch (error) {
      throw this.#ended(id, options, error);
    }
  }

  /** A caller has it from here on, and may have appended when all is closed. */
  #handedOut(request: OpenRequest): OpenRequest {
    this.#handles.add(request);
    return request;
  }

  #opened(
    generation: number,
    { id, owner, options, small }: Submission,
    more: { joined?: boolean; check?: ItemCheck | undefined; known?: number; allIn?: boolean } = {},
  ): OpenRequest {
    if (this.#closing.signal.aborted) throw new ClosedError('producer');
    const parts = {
      ...{ id, generation, producer: owner, options, closing: this.#closing.signal },
      ...{ firstNumber: firstNumber(small), ...more },
    };
    const { queue, agenda, open } = this.#desks[this.#shards.indexOf(id)] as Desk;
    const request = new OpenRequest(this.#connection, queue, parts, (closed) => {
      open.delete(closed);
      this.#handles.delete(closed);
      if (open.size === 0) void agenda.stop();
    });
    if (request.allIn) return request;
    open.add(request);
    agenda.start();
    return request;
  }

  /** Name of the queue that the request goes to. */
  #queueOf({ id }: Asked): string {
    return this.#shards.of(id).keys.queue;
  }
}

/** The seal of a submission whose items are all at hand. */
const sealOf = ({ owner, small }: Submission, generation: number): SealOf => ({
  generation,
  producer: owner,
  sent: firstNumber(small) + (small?.length ?? 0),
});

/** The name of a submission whose items are known by that of their source. */
const ofSource = (digest: string, { source }: CheckedOptions): string | undefined =>
  source === undefined ? undefined : submissionName(digest, [`source ${source}`]);

const encoded = (item: unknown): string => item as string;
