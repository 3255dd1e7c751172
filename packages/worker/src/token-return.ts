import { type Minted, parseToken } from '@piecework/protocol';
import type { WorkerCore } from './worker-core.js';

/** Most tokens that one call takes: Lua unpacks no more than some thousand arguments. */
const TAKE = 500;
/** A request has at most about so many tokens outstanding. */
const OUTSTANDING = 40;

/**
 * Puts the tokens out that a script minted for one request. Nobody waits for it: a token that gets
 * lost here was counted, and is found lost by the epochs.
 */
export class TokenReturn {
  readonly #core: WorkerCore;
  readonly #isYielding: () => boolean;
  readonly #onTokens: (tokens: readonly string[]) => void;

  constructor(
    core: WorkerCore,
    hooks: { isYielding: () => boolean; onTokens: (tokens: readonly string[]) => void },
  ) {
    this.#core = core;
    this.#isYielding = hooks.isYielding;
    this.#onTokens = hooks.onTokens;
  }

  /** Pushes them for anybody. */
  push(minted: Minted): void {
    if (minted.mint > 0) this.#core.later(minted.id, () => this.#core.queue.push(minted));
  }

  /**
   * For a worker that leaves: when a slot is free, it returns them and takes the next ones in one
   * call; when it yields (`freed` permits), also when there is nothing to return.
   */
  handOn(minted: Minted, freed: number): void {
    const { slots, closing } = this.#core;
    const take = closing ? 0 : Math.min(slots.free, TAKE);
    if (take === 0 || (minted.mint === 0 && !(this.#isYielding() && freed > 0))) {
      this.push(minted);
      return;
    }
    // The slots are kept until the tokens are here, or the intake would pop for them as well.
    slots.take(take);
    this.#core.later(minted.id, async () => {
      let tokens: string[] = [];
      try {
        tokens = await this.#swap(minted, take);
      } finally {
        // In one turn, so that whoever waits for a free slot finds it taken.
        slots.take(-take);
        this.#onTokens(tokens);
      }
    });
  }

  /**
   * A request that yields may have tokens of its own at the end of the list, which would bring this
   * worker straight back: they are taken out of the way, until somebody else's come; `enter` returns
   * them to the other end.
   */
  async #swap(minted: Minted, take: number): Promise<string[]> {
    const { queue } = this.#core;
    const tokens = await this.#core.insist(minted.id, () => queue.swap(minted, take));
    const own = (token: string) => parseToken(token).id === minted.id;
    while (this.#isYielding() && tokens.length < OUTSTANDING && tokens.every(own)) {
      const more = await this.#core.insist(minted.id, () =>
        queue.swap({ ...minted, mint: 0 }, take),
      );
      if (more.length === 0) break;
      tokens.push(...more);
    }
    return tokens;
  }
}
