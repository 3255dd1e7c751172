import { parseToken } from '@piecework/protocol';
import type { Shard } from './fetch/shard.js';
import type { WorkerShards } from './fetch/worker-shards.js';
import { RequestSession } from './request/request-session.js';
import type { WorkerContext } from './shared/worker-context.js';

/** A request to enter, with the epochs of the tokens that came for it. */
interface Arrival {
  readonly id: string;
  readonly generation: number;
  readonly epochs: string[];
}

/** Turns tokens into sessions: one for each request that this worker has to do with. */
export class Dispatcher {
  readonly #core: WorkerContext;
  readonly #shards: WorkerShards;
  readonly #sessions = new Map<string, RequestSession>();

  constructor(core: WorkerContext, shards: WorkerShards) {
    this.#core = core;
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

  /** What is held of a paused queue is left as its handlers end. */
  leavePaused(paused: Shard): void {
    if (!paused.paused) return;
    for (const session of this.#sessions.values()) if (session.shard === paused) session.leave();
  }

  /** Gathers the tokens of each request and enters it. `from`: who took them, perhaps over by now. */
  dispatch(shard: Shard, tokens: readonly string[], from?: RequestSession): void {
    const arrived = new Map<string, Arrival>();
    for (const token of tokens) {
      const { id, generation, epoch } = parseToken(token);
      const key = `${id}~${generation}`;
      const known = arrived.get(key);
      if (known) known.epochs.push(epoch);
      else arrived.set(key, { id, generation, epochs: [epoch] });
    }
    this.enterAll(shard, [...arrived.values()], from);
  }

  /**
   * Shares the free slots among requests and enters each. One that gets none is entered all the
   * same: its tokens are counted out and minted again, to wait at the end of their list. That is how
   * a request that yields its turn lets the others pass, and how a closing worker hands tokens on.
   */
  enterAll(shard: Shard, arrivals: readonly Arrival[], from?: RequestSession): void {
    const entries = arrivals.map(({ id, generation, epochs }) => {
      const session = this.#sessionOf(shard, id, generation);
      const yields = session.yielding || (from?.yielding && from.id === id);
      return { session, epochs, turn: !yields };
    });
    const nobodyElse = entries.every(({ turn }) => !turn);
    let free = this.#core.closing ? 0 : shard.slots.free;
    let left = entries.filter(({ turn }) => turn || nobodyElse).length;
    for (const { session, epochs, turn } of entries) {
      let want = 0;
      if (turn || nobodyElse) {
        want = Math.ceil(free / left);
        free -= want;
        left -= 1;
      }
      session.enter(epochs, want);
    }
  }

  #sessionOf(shard: Shard, id: string, generation: number): RequestSession {
    const key = `${id}~${generation}`;
    let session = this.#sessions.get(key);
    if (!session) {
      session = new RequestSession(this.#core, shard, id, generation, {
        holdQueue: this.#shards.hold,
        isContended: (priority, expedited) =>
          this.#shards.contended(shard, id, priority, expedited),
        onTokens: (tokens, from) => this.dispatch(shard, tokens, from),
        onTurn: (waiting) =>
          this.enterAll(this.#shards.named(waiting.shard.name), [{ ...waiting, epochs: [] }]),
        onOver: (over) => {
          if (this.#sessions.get(key) === over) {
            this.#sessions.delete(key);
            if (this.#sessions.size === 0) this.#core.events.tell('drained');
          }
          shard.lookForParked();
        },
      });
      this.#sessions.set(key, session);
    }
    return session;
  }
}
