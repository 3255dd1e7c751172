import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { quantile } from 'simple-statistics';

const EVERY_MS = 50;

/** Measures PING on a connection of its own until it is stopped. */
export class RoundTrips {
  readonly #samplesMs: number[] = [];
  readonly #stopping = new AbortController();
  readonly #running: Promise<void>;

  constructor(address: { host: string; port: number }) {
    this.#running = this.#run(new Redis({ ...address }));
  }

  /** The median, in ms. */
  async close(): Promise<number> {
    this.#stopping.abort();
    await this.#running;
    return quantile(this.#samplesMs, 0.5);
  }

  async #run(client: Redis): Promise<void> {
    await client.ping();
    do {
      const startMs = performance.now();
      await client.ping();
      this.#samplesMs.push(performance.now() - startMs);
      await sleep(EVERY_MS);
    } while (!this.#stopping.signal.aborted);
    client.disconnect();
  }
}
