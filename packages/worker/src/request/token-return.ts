import { type Minted, parseToken, RequestCommands, tellOpen } from '@piecework/protocol';
import type { Shard } from '../fetch/shard.js';
import type { WorkerContext } from '../shared/worker-context.js';

/** Most tokens that one call takes: Lua unpacks no more than some thousand arguments. */
const TAKE = 500;
/** A request has at most about so many tokens outstanding. */
const OUTSTANDING = 40;

/**
 * Puts the tokens out that a script minted for one request. Nobody waits for it: a token that gets
 * lost here was counted, and is found lost by the epochs.
 */
export class TokenReturn {
  readonly #core: WorkerContext;
  readonly #shard: Shard;
  readonly #isYielding: () => boolean;
  readonly #onTokens: (tokens: readonly string[]) => void;

  constructor(
    core: WorkerContext,
    shard: Shard,
    hooks: { isYielding: () => boolean; onTokens: (tokens: readonly string[]) => void },
  ) {
    this.#core = core;
    this.#shard = shard;
    this.#isYielding = hooks.isYielding;
    this.#onTokens = hooks.onTokens;
  }

  /** Pushes them for anybody. */
  push(minted: Minted): void {
    if (minted.mint > 0) this.#core.later(minted.id, () => this.#push(minted));
  }

  #push(minted: Minted) {
    const { queue } = this.#shard;
    const request = new RequestCommands(this.#core.connection, minted.id);
    return tellOpen(queue, request, minted.generation, () => queue.push(minted));
  }

  /**
   * For a worker that leaves: when a slot is free, it returns them and takes the next ones in one
   * call; when it yields (`freed` permits), also when there is nothing to return.
   */
  handOn(minted: Minted, freed: number): void {
    const { closing } = this.#core;
    const { slots } = this.#shard;
    const { free } = slots;
    // What comes next may be of another queue or shard, which the intakes know.
    const take = closing || slots.shared ? 0 : Math.min(slots.tokens, TAKE);
    if (take === 0 || (minted.mint === 0 && !(this.#isYielding() && freed > 0))) {
      this.push(minted);
      return;
    }
    // The slots are kept until the tokens are here, or the intake would pop for them as well.
    slots.take(free);
    this.#core.later(minted.id, async () => {
      let tokens: string[] = [];
      try {
        tokens = await this.#swap(minted, take, Math.min(free, TAKE));
      } finally {
        // In one turn, so that whoever waits for a free slot finds it taken.
        slots.take(-free);
        this.#onTokens(tokens);
      }
    });
  }

  /**
   * A request that yields may have tokens of its own at the end of the list, which would bring this
   * worker straight back: they are taken out of the way, until somebody else's come; `enter` returns
   * them to the other end.
   */
  async #swap(minted: Minted, take: number, most: number): Promise<string[]> {
    const { queue } = this.#shard;
    // Pushed again, if it is open at all.
    const onClosed = () => this.push(minted);
    const tokens = [
      ...(await this.#core.insist(minted.id, () => queue.swap(minted, take, onClosed))),
    ];
    const own = (token: string) => parseToken(token).id === minted.id;
    while (this.#isYielding() && tokens.length < OUTSTANDING && tokens.every(own)) {
      const more = await this.#core.insist(minted.id, () =>
        queue.swap({ ...minted, mint: 0 }, most),
      );
      if (more.length === 0) break;
      tokens.push(...more);
    }
    return tokens;
  }
}
