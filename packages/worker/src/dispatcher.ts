import { parseToken } from '@piecework/protocol';
import type { Shard } from './fetch/shard.js';
import type { Shards } from './fetch/shards.js';
import { Engagement } from './request/request-session.js';
import type { WorkerCore } from './shared/worker-context.js';

/** A request to enter, with the epochs of the tokens that came for it. */
interface Arrival {
  readonly id: string;
  readonly generation: number;
  readonly epochs: string[];
}

/** Turns tokens into engagements: one for each request that this worker has to do with. */
export class Dispatcher {
  readonly #core: WorkerCore;
  readonly #shards: Shards;
  readonly #engagements = new Map<string, Engagement>();

  constructor(core: WorkerCore, shards: Shards) {
    this.#core = core;
    this.#shards = shards;
  }

  get engagements(): MapIterator<Engagement> {
    return this.#engagements.values();
  }

  get size(): number {
    return this.#engagements.size;
  }

  /** `<id>~<generation>` of each. */
  get names(): MapIterator<string> {
    return this.#engagements.keys();
  }

  of(id: string, generation: number): Engagement | undefined {
    return this.#engagements.get(`${id}~${generation}`);
  }

  /** What is held of a paused queue is left as its handlers end. */
  leavePaused(paused: Shard): void {
    if (!paused.paused) return;
    for (const engagement of this.#engagements.values())
      if (engagement.shard === paused) engagement.leave();
  }

  /** Gathers the tokens of each request and enters it. `from`: who took them, perhaps over by now. */
  dispatch(shard: Shard, tokens: readonly string[], from?: Engagement): void {
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
  enterAll(shard: Shard, arrivals: readonly Arrival[], from?: Engagement): void {
    const entries = arrivals.map(({ id, generation, epochs }) => {
      const engagement = this.#engagementOf(shard, id, generation);
      const yields = engagement.yielding || (from?.yielding && from.id === id);
      return { engagement, epochs, turn: !yields };
    });
    const nobodyElse = entries.every(({ turn }) => !turn);
    let free = this.#core.closing ? 0 : shard.slots.free;
    let left = entries.filter(({ turn }) => turn || nobodyElse).length;
    for (const { engagement, epochs, turn } of entries) {
      let want = 0;
      if (turn || nobodyElse) {
        want = Math.ceil(free / left);
        free -= want;
        left -= 1;
      }
      engagement.enter(epochs, want);
    }
  }

  #engagementOf(shard: Shard, id: string, generation: number): Engagement {
    const key = `${id}~${generation}`;
    let engagement = this.#engagements.get(key);
    if (!engagement) {
      engagement = new Engagement(this.#core, shard, id, generation, {
        holdQueue: this.#shards.hold,
        isContended: (priority, expedited) =>
          this.#shards.contended(shard, id, priority, expedited),
        onTokens: (tokens, from) => this.dispatch(shard, tokens, from),
        onTurn: (waiting) =>
          this.enterAll(this.#shards.named(waiting.shard.name), [{ ...waiting, epochs: [] }]),
        onOver: (over) => {
          if (this.#engagements.get(key) === over) {
            this.#engagements.delete(key);
            if (this.#engagements.size === 0) this.#core.events.tell('drained');
          }
          shard.lookForParked();
        },
      });
      this.#engagements.set(key, engagement);
    }
    return engagement;
  }
}
