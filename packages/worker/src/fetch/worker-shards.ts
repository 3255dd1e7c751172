import { type Expedited, pausedForMs } from '@piecework/protocol';
import pTimeout from 'p-timeout';
import type { Shard } from './shard.js';

/** How long the shards beside the own one may take to say whether somebody waits there, in ms. */
const ASK_MS = 500;

/** Sends a call again until it is answered, or the worker is closed. */
type Insist = <T>(about: string, call: () => Promise<T>) => Promise<T>;

/** The queues that a worker takes work from: one, or the shards of one. */
export class WorkerShards {
  readonly all: readonly Shard[];
  readonly #insist: Insist;
  /** Those that have not answered in time. */
  readonly #silent = new Set<Shard>();

  constructor(all: readonly Shard[], insist: Insist) {
    this.all = all;
    this.#insist = insist;
  }

  /** The one of this name, which is one of them. */
  named(name: string): Shard {
    return this.all.find((shard) => shard.name === name) as Shard;
  }

  /** Pauses the queue for so many ms, here at once. */
  readonly hold = async (ms: number): Promise<void> => {
    const hold = async (shard: Shard) =>
      shard.learn(pausedForMs(await this.#insist(shard.name, () => shard.control.pause(ms))));
    await Promise.all(this.all.map(hold));
  };

  /**
   * Whether anybody else of the same or a higher priority waits, in whichever shard. Only the own one is
   * waited for until it answers: what runs is not held up by a server that it has nothing to do with.
   */
  async contended(
    own: Shard,
    id: string,
    priority: number,
    expedited?: Expedited,
  ): Promise<boolean> {
    const ask = ({ queue }: Shard) => queue.contended(id, priority, expedited);
    const others = this.all.filter(
      (shard) =>
        shard !== own && !shard.paused && shard.intake.down === '' && !this.#silent.has(shard),
    );
    const asked = others.map((shard) => this.#askSoon(shard, ask));
    const answers = await Promise.all([this.#insist(id, () => ask(own)), ...asked]);
    return answers.includes(true);
  }

  /** One that is late is not asked again before it has answered. */
  async #askSoon(shard: Shard, ask: (shard: Shard) => Promise<boolean>): Promise<boolean> {
    const answer = ask(shard)
      .catch(() => false)
      .finally(() => this.#silent.delete(shard));
    const fallback = () => {
      this.#silent.add(shard);
      return false;
    };
    return pTimeout(answer, { milliseconds: ASK_MS, fallback });
  }
}
