import { type Place, parseToken } from '@piecework/protocol';
import type { Shard } from './fetch/shard.js';
import type { WorkerShards } from './fetch/worker-shards.js';
import { RequestSession } from './request/request-session.js';
import type { SlotAccount } from './request/slot-account.js';
import { QUICK_MS } from './shared/read-at-enter.js';
import type { WorkerContext } from './shared/worker-context.js';

/** A request to enter, with the epochs of the tokens that came for it. */
interface Arrival {
  readonly id: string;
  readonly generation: number;
  readonly epochs: string[];
}

/** A session that took tokens for others. */
type Yielding = Pick<RequestSession, 'id' | 'yielding'>;

/** A session that gives its slots up as its handlers end. */
interface Giving {
  readonly id: string;
  readonly account: SlotAccount;
}

/** Turns tokens into sessions: one for each request that this worker works on. */
export class Dispatcher {
  readonly #context: WorkerContext;
  readonly #shards: WorkerShards;
  readonly #sessions = new Map<string, RequestSession>();

  constructor(context: WorkerContext, shards: WorkerShards) {
    this.#context = context;
    this.#shards = shards;
  }

  get sessions(): MapIterator<RequestSession> {
    return this.#sessions.values();
  }

  get size(): number {
    return this.#sessions.size;
  }

  /** `<id>~<generation>` of each. */
  get names(): MapIterator<string> {
    return this.#sessions.keys();
  }

  of(id: string, generation: number): RequestSession | undefined {
    return this.#sessions.get(`${id}~${generation}`);
  }

  /** Sessions of a paused queue leave as their handlers end. */
  leavePaused(paused: Shard): void {
    if (!paused.paused) return;
    for (const session of this.#sessions.values()) if (session.shard === paused) session.leave();
  }

  /**
   * Gathers the tokens of each request and enters it, with `most` of the free slots while handlers are quick: the slots
   * of others are not worth the time of an enter. `from`: the session that took them, perhaps ended by now.
   */
  dispatch(shard: Shard, tokens: readonly string[], most: number, from?: Yielding): void {
    const areQuick = (this.#context.lately.averageMs ?? Number.POSITIVE_INFINITY) <= QUICK_MS;
    const slots = areQuick ? most : Number.POSITIVE_INFINITY;
    this.enterAll(shard, arrivalsOf(tokens), slots, from);
  }

  /**
   * Enters requests with the slots that `from` gives up as its handlers end. Its own tokens, and those of others
   * that yield, are counted out and minted again. Returns whether there are others.
   */
  #handOver(shard: Shard, arrivals: readonly Arrival[], from: Giving): boolean {
    const entries = arrivals.map(({ id, generation, epochs }) => {
      const session = this.#sessionOf(shard, id, generation);
      return { session, epochs, turn: id !== from.id && !session.yielding };
    });
    enterEach(entries, from.account.promisable, from.account);
    return entries.some(({ turn }) => turn);
  }

  /**
   * Shares the free slots, at most `most`, among requests and enters each. A request that gets none is entered all the
   * same: its tokens are counted out and minted again, to wait at the end of their list. In this way a request that
   * yields lets the others pass, and a closing worker hands tokens on.
   */
  enterAll(
    shard: Shard,
    arrivals: readonly Arrival[],
    most = Number.POSITIVE_INFINITY,
    from?: Yielding,
  ): void {
    const entries = arrivals.map(({ id, generation, epochs }) => {
      const session = this.#sessionOf(shard, id, generation);
      const yields = session.yielding || (from?.yielding && from.id === id);
      return { session, epochs, turn: !yields };
    });
    const allYield = entries.every(({ turn }) => !turn);
    const free = this.#context.closing ? 0 : Math.min(shard.slots.free, most);
    enterEach(
      entries.map((entry) => ({ ...entry, turn: entry.turn || allYield })),
      free,
    );
  }

  /** Gives free slots to a session of this place that has fewer than its share and can use more. */
  #extend(shard: Shard, place: Place): boolean {
    const { free, shared } = shard.slots;
    if (free === 0 || this.#context.closing || shared) return false;
    for (const session of this.#sessions.values()) {
      const want = session.shard === shard ? Math.min(free, session.lacks(place)) : 0;
      if (want === 0) continue;
      session.enter([], want);
      return true;
    }
    return false;
  }

  #sessionOf(shard: Shard, id: string, generation: number): RequestSession {
    const key = `${id}~${generation}`;
    let session = this.#sessions.get(key);
    if (!session) {
      session = new RequestSession(this.#context, shard, id, generation, {
        holdQueue: this.#shards.hold,
        askContention: (priority, expedited) =>
          this.#shards.shouldYield(shard, id, priority, expedited),
        onTokens: (tokens, from) => this.dispatch(shard, tokens, Number.POSITIVE_INFINITY, from),
        onTurn: (waiting) =>
          this.enterAll(this.#shards.named(waiting.shard.name), [{ ...waiting, epochs: [] }]),
        onFree: (place) => this.#extend(shard, place),
        onHandOver: ({ tokens, waiting }, account, { id: from }) => {
          const giving = { id: from, account };
          if (!waiting) return this.#handOver(shard, arrivalsOf(tokens), giving);
          const of = this.#shards.named(waiting.shard.name);
          return this.#handOver(of, [{ ...waiting, epochs: [] }], giving);
        },
        onEnded: (ended) => {
          if (this.#sessions.get(key) === ended) {
            this.#sessions.delete(key);
            if (this.#sessions.size === 0) this.#context.events.emit('drained');
          }
          shard.tickForParked();
        },
      });
      this.#sessions.set(key, session);
    }
    return session;
  }
}

/** Enters each, with an equal share of `free` slots if it has its turn. `from`: who gives them up; else they are free. */
function enterEach(
  entries: readonly {
    readonly session: RequestSession;
    readonly epochs: readonly string[];
    readonly turn: boolean;
  }[],
  free: number,
  from?: SlotAccount,
): void {
  let left = entries.filter(({ turn }) => turn).length;
  let slots = free;
  for (const { session, epochs, turn } of entries) {
    const want = turn ? Math.ceil(slots / left) : 0;
    slots -= want;
    left -= Number(turn);
    session.enter(epochs, want, from);
  }
}

/** The tokens of each request together. */
function arrivalsOf(tokens: readonly string[]): readonly Arrival[] {
  const arrived = new Map<string, Arrival>();
  for (const token of tokens) {
    const { id, generation, epoch } = parseToken(token);
    const key = `${id}~${generation}`;
    const known = arrived.get(key);
    if (known) known.epochs.push(epoch);
    else arrived.set(key, { id, generation, epochs: [epoch] });
  }
  return [...arrived.values()];
}
