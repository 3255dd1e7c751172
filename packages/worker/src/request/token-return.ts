import {
  goesBefore,
  type Minted,
  type Place,
  parseToken,
  RequestReads,
  reopenIfClosed,
} from '@piecework/protocol';
import type { Shard } from '../fetch/shard.js';
import type { Waiting } from '../shared/waiting-room.js';
import type { WorkerContext } from '../shared/worker-context.js';
import type { Pace } from './pace.js';
import type { SessionMode } from './session-mode.js';

/** What happens to the slots that become free. */
interface Hooks {
  /** Tokens that came for slots that are free now. */
  readonly onTokens: (tokens: readonly string[]) => void;
  /** A request in the waiting room whose turn it is. */
  readonly onTurn: (waiting: Waiting) => void;
  /** Gives slots that are free now to a request of this place that began its turn here. Returns whether one took them. */
  readonly onFree: (place: Place) => boolean;
}

/** What an enter answered. */
type EnterReply = Place & {
  readonly mint: number;
  readonly epoch: number;
  readonly ready: number;
  /** How many sub-requests one permit runs before another worker could enter; 0: none. */
  readonly quick: number;
  readonly entries: readonly unknown[];
};

/** Most tokens that one call takes: Lua unpacks no more than some thousand arguments. */
const TAKE = 500;
/** A request has at most about so many tokens outstanding. */
const OUTSTANDING = 40;

/** The request whose tokens these are. */
interface Session {
  readonly id: string;
  readonly generation: number;
  readonly shard: Shard;
}

/**
 * What others get from a session: the tokens that a script minted for its request, and its slots. Nobody waits for
 * a token to be put out: one that gets lost here was counted, and the epochs show that it is lost.
 */
export class TokenReturn {
  /** Among the requests that wait. */
  place: Place = { priority: 0 };
  /** Whether the last enter granted all that it asked for, and more is ready. */
  gotAll = false;
  readonly #context: WorkerContext;
  readonly #session: Session;
  readonly #shard: Shard;
  readonly #mode: SessionMode;
  readonly #pace: Pace;
  readonly #hooks: Hooks;

  constructor(
    context: WorkerContext,
    session: Session,
    mode: SessionMode,
    pace: Pace,
    hooks: Hooks,
  ) {
    this.#context = context;
    this.#session = session;
    this.#shard = session.shard;
    this.#mode = mode;
    this.#pace = pace;
    this.#hooks = hooks;
  }

  /** How many slots of its share the session lacks, if it is in its turn, is of this place, and can use more. */
  lacks(place: Place, permits: number): number {
    const isEqual = !goesBefore(this.place, place) && !goesBefore(place, this.place);
    if (!isEqual || !this.#mode.working || !this.gotAll) return 0;
    return Math.max(0, this.#shard.slots.share(this.#pace.isShort) - permits);
  }

  /** An enter with so many tokens wanted permits for `wanted` slots, and was granted `granted`. */
  entered(reply: EnterReply, tokens: number, wanted: number, granted: number): void {
    const { id, generation, shard } = this.#session;
    this.place = { priority: reply.priority, due: reply.due };
    // The request has no token, and no slot was free for it: it waits in this process.
    if (tokens === 0 && wanted === 0)
      this.#context.waitingRoom.add({ id, generation, shard, ...this.place });
    // No more than it had: it has all that it can use.
    else if (granted <= 0) this.#context.waitingRoom.delete(id);
    this.gotAll = wanted > 0 && granted >= wanted && reply.ready > 0;
    const { entries, quick, ready } = reply;
    // One that was read whole and whose handlers are that short hardly uses the other slots.
    const isQuick = quick > 0 && ready === 0 && entries.length > 0;
    const used = isQuick ? Math.min(granted, Math.ceil(entries.length / quick)) : granted;
    if (wanted > 0) shard.slots.entered(used, this.gotAll, this.#pace.isShort);
    this.#later(this.#minted(reply.mint, reply.epoch));
  }

  /** A settle gave `freed` permits back: puts out their tokens, and lets others have the slots. */
  settled(mint: number, epoch: number, freed: number): void {
    const { yielding, leaving, passesOn } = this.#mode;
    const minted = this.#minted(mint, epoch);
    const isFree = yielding && freed > 0 && this.#shard.slots.free > 0;
    const waiting = isFree ? this.nextWaiting() : undefined;
    // A request in the waiting room comes first: it has waited longer than those whose tokens come next.
    // Then one that began its turn with other slots of this one: with one slot each, requests settle one by one.
    const isTaken = yielding && freed > 0 && !waiting && this.#hooks.onFree(this.place);
    if (leaving && !waiting && !isTaken && !passesOn) this.#handOn(minted, freed);
    else this.#later(minted);
    if (waiting) this.#hooks.onTurn(waiting);
  }

  /** Takes tokens of requests that are to have `slots` slots of this session. */
  takeNext(slots: number): Promise<readonly string[]> {
    const take = Math.min(this.#shard.slots.tokensFor(slots), TAKE);
    return this.#exchange(this.#minted(0, 0), take, take);
  }

  /** The request in the waiting room that gets a slot of this one. */
  nextWaiting(): Waiting | undefined {
    const { closing, waitingRoom } = this.#context;
    if (closing) return undefined;
    return waitingRoom.next(this.place, this.#session.id);
  }

  #minted(mint: number, epoch: number): Minted {
    const { id, generation } = this.#session;
    return { id, generation, mint, epoch, ...this.place };
  }

  #later(minted: Minted): void {
    if (minted.mint > 0) this.#context.later(minted.id, () => this.#push(minted));
  }

  #push(minted: Minted) {
    const { queue } = this.#shard;
    const request = new RequestReads(this.#context.connection, minted.id);
    return reopenIfClosed(queue, request, minted.generation, () => queue.push(minted));
  }

  /**
   * For a session that leaves: when a slot is free, returns the tokens and takes the next ones in one
   * call; when it yields (`freed` permits), also when there is nothing to return.
   */
  #handOn(minted: Minted, freed: number): void {
    const { closing } = this.#context;
    const { slots } = this.#shard;
    const { free } = slots;
    // The next token may be one of another queue or shard; the token fetchers know whose turn it is.
    const take = closing || slots.shared ? 0 : Math.min(slots.tokens, TAKE);
    if (take === 0 || (minted.mint === 0 && !(this.#mode.yielding && freed > 0))) {
      this.#later(minted);
      return;
    }
    // The slots are kept until the tokens are here, or the token fetcher would pop for them as well.
    slots.take(free);
    this.#context.later(minted.id, async () => {
      let tokens: string[] = [];
      try {
        tokens = await this.#exchange(minted, take, Math.min(free, TAKE));
      } finally {
        // In one turn, so that nothing else takes the slots in between.
        slots.release(free);
        this.#hooks.onTokens(tokens);
      }
    });
  }

  /**
   * A request that yields may have tokens of its own at the end of the list, which would bring this
   * worker straight back: they are taken out of the way, until somebody else's come; `enter` returns
   * them to the other end.
   */
  async #exchange(minted: Minted, take: number, most: number): Promise<string[]> {
    const { queue } = this.#shard;
    // Pushed again, if it is open at all.
    const onClosed = () => this.#later(minted);
    const tokens = [
      ...(await this.#context.insist(minted.id, () => queue.exchange(minted, take, onClosed))),
    ];
    const own = (token: string) => parseToken(token).id === minted.id;
    while (this.#mode.yielding && tokens.length < OUTSTANDING && tokens.every(own)) {
      const more = await this.#context.insist(minted.id, () =>
        queue.exchange({ ...minted, mint: 0 }, most),
      );
      if (more.length === 0) break;
      tokens.push(...more);
    }
    return tokens;
  }
}
