import { type Failure, Notifier } from '@piecework/notifier';
import { type Site, sealIn, whyGone } from '@piecework/producer';
import {
  type Connection,
  ConnectionError,
  DroppedError,
  giveUp,
  isOpen,
  LostError,
  NotCompleteError,
  NotFoundError,
  type OptionTable,
  option,
  Patience,
  type Patiently,
  type QueueCommands,
  RedriveCommands,
  RequestCommands,
  SealedError,
  type Shards,
  tellOpen,
  tellOver,
} from '@piecework/protocol';
import { nanoid } from 'nanoid';
import { z } from 'zod';

/** Which failed sub-requests run again; of several conditions all must hold. */
export interface RedriveOptions {
  /** Those of these indexes, at most 100,000; of the others nothing is said. @default all */
  readonly indexes?: readonly number[] | undefined;
  /** Those whose error has this name, as 'TypeError'. @default all */
  readonly name?: string | undefined;
  /** Those for which it answers true. What it throws ends the redrive; what was moved runs. */
  readonly where?: ((failure: Failure) => boolean | Promise<boolean>) | undefined;
}

const index = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER);

export const redriveOptions: OptionTable = {
  indexes: option.custom(
    z.array(index).min(1).max(100_000),
    'an array of 1 to 100000 whole numbers from 0 on',
  ),
  name: option.custom(z.string().min(1).max(128), 'the name of an error, 1 to 128 characters'),
  where: option.custom(
    z.any().refine((value) => typeof value === 'function'),
    'a function',
  ),
};

/** What a redrive did. */
export interface Redriven {
  /** The life of the id that the request is in now: a new one, unless nothing was redriven. */
  readonly generation: number;
  /** How many sub-requests run again. */
  readonly redriven: number;
}

/** How often it starts over when its intent was given up before it was used. */
const VOID_TRIES = 5;
/** How long a redrive without a sign of life is believed, in ms; then what was moved is sealed. */
const LEASE_MS = 30_000;
/** Sub-requests that one call moves. */
const CHUNK = 100;

/**
 * Runs failed sub-requests of a complete request again, as a new life of its id. The order is that of
 * a submission: intent (queue side), open the next life, move a chunk, push (queue side), …, seal. Cut
 * anywhere, the agenda finds what is left: what was moved runs, what was not stays failed.
 */
export class Redrive {
  readonly #connection: Connection;
  readonly #shards: Shards;
  #queue: QueueCommands;
  readonly #id: string;
  readonly #patience: Patience;
  readonly #request: RequestCommands;
  readonly #commands: RedriveCommands;
  /** Tells this redrive from others of the same request. */
  readonly #owner = nanoid(12);

  /** `forMs`: how long each call is tried. */
  constructor(connection: Connection, shards: Shards, id: string, forMs: number) {
    this.#connection = connection;
    this.#shards = shards;
    this.#queue = shards.of(id);
    this.#id = id;
    this.#patience = new Patience(connection, id, { forMs });
    this.#request = new RequestCommands(connection, id);
    this.#commands = new RedriveCommands(connection, id);
  }

  async run(options: RedriveOptions): Promise<Redriven> {
    const { queue, all } = this.#shards;
    if (all.length > 1) {
      // It goes on where it is, also when the number of shards was another one then.
      const { queue: own } = await this.#patience.call(() => this.#request.fields('queue'));
      if (own) this.#queue = this.#shards.named(own);
    }
    const { generation: complete } = await this.#completeState();
    await using notifier = new Notifier({ redis: this.#connection, queue, shards: all.length });
    let life: Life | undefined;
    let renewal: NodeJS.Timeout | undefined;
    let redriven = 0;
    try {
      // Nothing is opened for nothing.
      for await (const chunk of this.#chunks(notifier, options)) {
        life ??= await this.#open();
        const { generation } = life;
        renewal ??= setInterval(
          () => void this.#request.keepOpen(generation).catch(() => {}),
          LEASE_MS / 3,
        );
        redriven = await this.#move(generation, chunk);
      }
    } catch (error) {
      // What was moved runs and completes; if this fails too, the end of the lease seals it.
      if (life) await this.#seal(life).catch(() => {});
      throw error;
    } finally {
      clearInterval(renewal);
    }
    if (life) {
      await this.#seal(life);
      await this.#expectMoved(life, redriven);
    } else {
      // That nothing failed is only known of a request that is still there, and complete.
      await this.#completeState(complete);
    }
    return { generation: life?.generation ?? complete, redriven };
  }

  /** `seen`: the life that was there before, or 0. @throws NotFoundError · LostError · DroppedError · NotCompleteError */
  async #completeState(seen = 0) {
    const state = await this.#patience.call(() => this.#request.state());
    if (state?.status === 'dropped') throw new DroppedError(this.#id);
    const lost = !state || state.status === 'void' || state.generation < seen;
    if (lost && seen > 0) throw new LostError(this.#id, true);
    if (lost) throw new NotFoundError(this.#id);
    if (state.status !== 'complete') {
      // As a redrive whose intent the server lost: whoever asks again heals it.
      await isOpen(this.#queue, this.#request, state.generation, this.#patiently);
      throw new NotCompleteError(this.#id, state.status);
    }
    return state;
  }

  /** Indexes of what is to run again, rising. */
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

  /** Intent, then the next life; again from the start when the intent was given up in between. */
  async #open(): Promise<Life> {
    let above = 0;
    let state = await this.#completeState();
    for (let voids = 0; voids < VOID_TRIES; ) {
      const { epoch } = this.#connection;
      const generation = await this.#patience.call(() => this.#queue.intent(this.#id, above));
      if (generation === state.generation) {
        // It is complete, and the queue was not told yet.
        const over = { generation, outcome: state.outcome };
        await tellOver(epoch, this.#queue, this.#request, over, this.#patiently);
        voids += 1;
        state = await this.#completeState();
        continue;
      }
      const opened = await this.#patience.call(() =>
        this.#commands.open(generation, this.#owner, LEASE_MS, epoch),
      );
      // Behind a new connection may be a server that lost the intent.
      if (opened.verdict === 'broke') continue;
      if (opened.verdict === 'opened') return { ...opened, generation };
      // Dropped meanwhile. Nothing refuses this generation to somebody who submits the id again under
      // the same intent, so it is left to the agenda.
      if (opened.verdict === 'gone') throw new NotFoundError(this.#id);
      if (opened.verdict === 'void') above = opened.above;
      if (opened.verdict !== 'exists' || opened.generation !== generation)
        await giveUp(this.#queue, this.#request, generation, this.#patiently);
      if (opened.verdict === 'exists') throw new NotCompleteError(this.#id, opened.status);
      voids += 1;
      state = await this.#completeState();
    }
    throw new ConnectionError(`request ${this.#id}: its intent was given up ${VOID_TRIES} times`);
  }

  /** Answers how many moved so far. */
  async #move(generation: number, chunk: readonly number[]): Promise<number> {
    let moved = 0;
    for (let left = chunk; left.length > 0; ) {
      const some = left;
      const again = await this.#patience.call(() =>
        this.#commands.runAgain(generation, this.#owner, some),
      );
      if (again.verdict === 'gone') throw await whyGone(this.#site, generation);
      if (again.verdict !== 'ok') throw new SealedError(this.#id, again.verdict);
      const { mint, epoch, priority } = again;
      const minted = { id: this.#id, generation, mint, epoch, priority };
      const push = () => this.#queue.push(minted);
      if (mint > 0) await tellOpen(this.#queue, this.#request, generation, push, this.#patiently);
      moved = again.moved;
      left = left.slice(again.done);
    }
    return moved;
  }

  /** Sealed in the name of who sealed it first, so that the first submission is still recognised. */
  async #seal({ generation, sealedBy, sent }: Life): Promise<void> {
    await sealIn(this.#site, { generation, producer: sealedBy, sent });
  }

  /** A server that lost what was moved seals the life without it. @throws LostError */
  async #expectMoved({ generation }: Life, redriven: number): Promise<void> {
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

/** The life that this redrive opened. */
interface Life {
  readonly generation: number;
  readonly sealedBy: string;
  readonly sent: number;
}
