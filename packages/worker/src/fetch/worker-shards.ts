import { type Contention, type Expedited, pausedForMs, within } from '@piecework/protocol';
import type { Shard } from './shard.js';

/** How long the other shards may take to answer whether a request waits there, in ms. */
const ASK_MS = 500;

/** Sends a call again until it is answered, or the worker is closed. */
type Insist = <T>(about: string, call: () => Promise<T>) => Promise<T>;

/** The queues that a worker takes work from: one, or the shards of one. */
export class WorkerShards {
  readonly all: readonly Shard[];
  readonly #insist: Insist;
  /** Shards that have not answered in time. */
  readonly #silent = new Set<Shard>();

  constructor(all: readonly Shard[], insist: Insist) {
    this.all = all;
    this.#insist = insist;
  }

  /** The shard of this name, which has to be one of them. */
  named(name: string): Shard {
    return this.all.find((shard) => shard.name === name) as Shard;
  }

  /** Pauses the queue for so many ms; in this process at once. */
  readonly hold = async (ms: number): Promise<void> => {
    const hold = async (shard: Shard) =>
      shard.learn(pausedForMs(await this.#insist(shard.name, () => shard.control.pause(ms))));
    await Promise.all(this.all.map(hold));
  };

  /**
   * Whether other requests wait, in any shard, and whether one of them goes before this one. Only the own shard is
   * waited for until it answers: a session does not wait for a server that its request is not on.
   */
  async shouldYield(
    own: Shard,
    id: string,
    priority: number,
    expedited?: Expedited,
  ): Promise<Contention> {
    const ask = ({ queue }: Shard) => queue.shouldYield(id, priority, expedited);
    const others = this.all.filter(
      (shard) =>
        shard !== own && !shard.paused && shard.intake.down === '' && !this.#silent.has(shard),
    );
    const asked = others.map((shard) => this.#askSoon(shard, ask));
    const answers = await Promise.all([this.#insist(id, () => ask(own)), ...asked]);
    return (['leave', 'share'] as const).find((one) => answers.includes(one)) ?? 'keep';
  }

  /** A shard that is late is not asked again before it has answered. */
  async #askSoon(shard: Shard, ask: (shard: Shard) => Promise<Contention>): Promise<Contention> {
    const answer = ask(shard)
      .catch(() => 'keep' as const)
      .finally(() => this.#silent.delete(shard));
    const fallback = () => {
      this.#silent.add(shard);
      return 'keep' as const;
    };
    return within(ASK_MS, answer, fallback);
  }
}
