import { type Failure, Notifier } from '@piecework/notifier';
import { type SealOf, type Site, sealRequest, wasRedriven, whyGone } from '@piecework/producer';
import {
  type Connection,
  ConnectionError,
  DroppedError,
  finishOnQueue,
  isOfLife,
  isOpen,
  LostError,
  NotCompleteError,
  NotFoundError,
  type OptionTable,
  option,
  Patience,
  type Patiently,
  ProducerCommands,
  type QueueCommands,
  RedriveCommands,
  renewAfterMs,
  reopenIfClosed,
  SealedError,
  type Shards,
  shape,
  withdrawGeneration,
} from '@piecework/protocol';
import { nanoid } from 'nanoid';

/** Which failed sub-requests run again; if several conditions are given, all must be met. */
export interface RedriveOptions {
  /** Those of these indexes, at most 100,000; an index that did not fail is ignored. @default all */
  readonly indexes?: readonly number[] | undefined;
  /** Those whose error has this name, as 'TypeError'. @default all */
  readonly name?: string | undefined;
  /** Those for which it returns true. If it throws, the redrive ends, and what was moved by then runs. @default all */
  readonly where?: ((failure: Failure) => boolean | Promise<boolean>) | undefined;
}

const index = shape.integer(0, Number.MAX_SAFE_INTEGER);

export const redriveOptions: OptionTable = {
  indexes: option.custom(
    shape.array(index, 1, 100_000),
    'an array of 1 to 100000 whole numbers from 0 on',
  ),
  name: option.custom(shape.text(1, 128), 'the name of an error, 1 to 128 characters'),
  where: option.custom(shape.callable, 'a function'),
};

/** What a redrive did. */
export interface Redriven {
  /** The current generation of the request: a new one, unless nothing was redriven. */
  readonly generation: number;
  /** How many sub-requests run again. */
  readonly redriven: number;
}

/** How often it starts over when its intent was given up before it was used. */
const VOID_TRIES = 5;
/** After this time without a renewal, in ms, an interrupted redrive is sealed with what was moved. */
const LEASE_MS = 30_000;
/** Sub-requests that one call moves. */
const CHUNK = 100;

/**
 * Runs failed sub-requests of a complete request again, as a new generation. The order is that of a submission:
 * intent (queue side), open the next generation, move a chunk, push (queue side), …, seal. If it is cut off
 * anywhere, the agenda finds what is left: what was moved runs, what was not stays failed. A call whose reply was lost
 * may be repeated after the new generation was complete and somebody else redrove the request: then it was moved all
 * the same.
 */
export class Redrive {
  readonly #connection: Connection;
  readonly #shards: Shards;
  #queue: QueueCommands;
  readonly #id: string;
  readonly #of: number;
  readonly #patience: Patience;
  readonly #request: ProducerCommands;
  readonly #commands: RedriveCommands;
  /** Distinguishes this redrive from others of the same request. */
  readonly #owner = nanoid(12);

  /** @param forMs how long each call is tried, in ms · `of`: a generation that it is known to have reached; 0: none */
  constructor(connection: Connection, shards: Shards, id: string, forMs: number, of: number) {
    this.#of = of;
    this.#connection = connection;
    this.#shards = shards;
    this.#queue = shards.of(id);
    this.#id = id;
    this.#patience = new Patience(connection, id, { forMs });
    this.#request = new ProducerCommands(connection, id);
    this.#commands = new RedriveCommands(connection, id);
  }

  async run(options: RedriveOptions): Promise<Redriven> {
    const { queue, all } = this.#shards;
    const { queue: own } = await this.#patience.call(() => this.#request.fields('queue'));
    // cure: a redriven request stays in its queue, and in its shard
    if (own) this.#queue = this.#shards.named(own);
    const { generation: complete } = await this.#completeState();
    await using notifier = new Notifier({ redis: this.#connection, queue, shards: all.length });
    let opened: SealOf | undefined;
    let renewal: NodeJS.Timeout | undefined;
    let redriven = 0;
    try {
      // Opens a new generation only if something is to run again.
      for await (const chunk of this.#chunks(notifier, options)) {
        opened ??= await this.#open(chunk);
        if (!opened) continue;
        const { generation } = opened;
        renewal ??= setInterval(
          () => void this.#request.renewProducer(generation).catch(() => {}),
          renewAfterMs(LEASE_MS),
        );
        redriven = await this.#move(opened, chunk);
      }
    } catch (error) {
      // What was moved runs and completes; if this fails too, the end of the lease seals it.
      if (opened) await this.#seal(opened).catch(() => {});
      throw error;
    } finally {
      clearInterval(renewal);
    }
    if (opened) {
      await this.#seal(opened);
      await this.#expectMoved(opened, redriven);
      return { generation: opened.generation, redriven };
    }
    // Nothing matched, or others have redriven it; that is only certain if the request still exists and is complete.
    const { generation } = await this.#completeState(complete);
    return { generation, redriven };
  }

  /**
   * @param seen the generation that existed before, or 0. @throws NotFoundError · LostError · DroppedError ·
   * NotCompleteError
   */
  async #completeState(seen = 0) {
    const state = await this.#patience.call(() => this.#request.state());
    if (state?.status === 'dropped') throw new DroppedError(this.#id);
    const lost = !state || state.status === 'void' || state.generation < seen;
    if (lost && seen > 0) throw new LostError(this.#id, true);
    if (lost) throw new NotFoundError(this.#id);
    // cure: another life of the id is not redriven
    if (!isOfLife(this.#of, state)) throw new LostError(this.#id);
    if (state.status !== 'complete') {
      // Perhaps a redrive whose intent the server lost: this call heals it.
      await isOpen(this.#queue, this.#request, state.generation, this.#patiently);
      throw new NotCompleteError(this.#id, state.status);
    }
    return state;
  }

  /** Indexes of the sub-requests to run again, rising. */
  async *#chunks(
    notifier: Notifier,
    { indexes, name, where }: RedriveOptions,
  ): AsyncGenerator<number[]> {
    const wanted = {
      payload: where !== undefined,
      ...(name === undefined ? {} : { name }),
      ...(indexes === undefined ? {} : { indexes }),
    };
    let chunk: number[] = [];
    for await (const failure of notifier.failures(this.#id, wanted)) {
      if (where && !(await where(failure))) continue;
      chunk.push(failure.index);
      if (chunk.length < CHUNK) continue;
      yield chunk;
      chunk = [];
    }
    if (chunk.length > 0) yield chunk;
  }

  /**
   * Intent, then the next generation; starts over when the intent was given up in between.
   * @returns undefined when others have redriven all of `chunk` since it was found
   */
  async #open(chunk: readonly number[]): Promise<SealOf | undefined> {
    let above = 0;
    let state = await this.#completeState();
    for (let voids = 0; voids < VOID_TRIES; ) {
      const { epoch } = this.#connection;
      const generation = await this.#patience.call(() => this.#queue.intent(this.#id, above));
      if (generation === state.generation) {
        // It is complete, and the queue side was not notified yet.
        const over = { generation, outcome: state.outcome };
        await finishOnQueue(epoch, this.#queue, this.#request, over, this.#patiently);
        voids += 1;
        state = await this.#completeState();
        continue;
      }
      const opened = await this.#patience.call(() =>
        this.#commands.open(generation, this.#owner, LEASE_MS, chunk, epoch),
      );
      // A new connection may lead to a server that lost the intent.
      if (opened.verdict === 'broke') continue;
      if (opened.verdict === 'opened') {
        const before = `${this.#id}~${state.generation}`;
        await this.#patience.call(() => this.#queue.forgetSpent(before));
        const { sealedBy, sent, createdAt } = opened;
        return { generation, producer: sealedBy, sent, createdAt };
      }
      // Dropped meanwhile. Another process may submit the id again under the same intent, so the intent is left to
      // the agenda.
      if (opened.verdict === 'gone') throw new NotFoundError(this.#id);
      if (opened.verdict === 'void') above = opened.above;
      if (opened.verdict !== 'exists' || opened.generation !== generation)
        await withdrawGeneration(this.#queue, this.#request, generation, this.#patiently);
      if (opened.verdict === 'none') return undefined;
      if (opened.verdict === 'exists') throw new NotCompleteError(this.#id, opened.status);
      voids += 1;
      state = await this.#completeState();
    }
    throw new ConnectionError(`request ${this.#id}: its intent was given up ${VOID_TRIES} times`);
  }

  /** @returns how many were moved so far */
  async #move(opened: SealOf, chunk: readonly number[]): Promise<number> {
    const { generation } = opened;
    let moved = 0;
    for (let left = chunk; left.length > 0; ) {
      const some = left;
      const again = await this.#patience.call(() =>
        this.#commands.runAgain(generation, this.#owner, some),
      );
      // cure: a redrive that another one followed is not called dropped
      if (again.verdict === 'gone' && (await wasRedriven(this.#site, opened)))
        throw new SealedError(this.#id, 'complete');
      if (again.verdict === 'gone') throw await whyGone(this.#site, generation);
      if (again.verdict !== 'ok') throw new SealedError(this.#id, again.verdict);
      const { mint, epoch, priority } = again;
      const minted = { id: this.#id, generation, mint, epoch, priority };
      const push = () => this.#queue.push(minted);
      if (mint > 0)
        await reopenIfClosed(this.#queue, this.#request, generation, push, this.#patiently);
      moved = again.moved;
      left = left.slice(again.done);
    }
    return moved;
  }

  /** Seals in the name of the first submission, so that a repetition of it is still recognised. */
  async #seal(opened: SealOf): Promise<void> {
    await sealRequest(this.#site, opened);
  }

  /** Checks that the server has not sealed the generation without what was moved. @throws LostError */
  async #expectMoved({ generation }: SealOf, redriven: number): Promise<void> {
    const names = ['generation', 'moved'] as const;
    const now = await this.#patience.call(() => this.#request.fields(...names));
    const known = Number(now['generation']);
    if (known < generation || (known === generation && Number(now['moved']) < redriven))
      throw new LostError(this.#id, true);
  }

  get #site(): Site {
    return {
      ...{ connection: this.#connection, queue: this.#queue },
      ...{ request: this.#request, patience: this.#patience },
    };
  }

  readonly #patiently: Patiently = (call) => this.#patience.call(call);
}
