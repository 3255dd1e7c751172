import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { DroppedError } from '@piecework/protocol/contract';
import { Piecework } from 'piecework/client';
import { restartText, WorkerFleet } from '../processes/fleet.js';
import { KINDS, type Kind } from './kinds.js';

const HANDLERS = fileURLToPath(new URL('./handlers.js', import.meta.url));
const PROCESSES = 2;
const SLOTS = 4;
/** Between the end of a request and the next of its kind, in ms. */
const PAUSE_MS = 5_000;
/** Requests that have ended stay for this time, so that the list stays short. */
const RETENTION_MS = 600_000;

/**
 * A small fleet at work: worker processes, and a request of each kind that is followed by the next when it has ended.
 * What people do with its requests (pause, cancel, drop) ends nothing of it.
 */
export class LivingExample {
  /** What it is, for people. */
  static readonly about =
    `${PROCESSES} worker processes with ${SLOTS} slots each; requests of ${KINDS.length} kinds, some fail`;
  readonly #fleet: WorkerFleet;
  readonly #pw: Piecework;
  readonly #closing = new AbortController();
  readonly #kinds: Promise<unknown>;
  /** Rejects when the example cannot go on by itself. */
  readonly lost: Promise<never>;

  private constructor(fleet: WorkerFleet, pw: Piecework) {
    this.#fleet = fleet;
    this.#pw = pw;
    this.#kinds = Promise.all(KINDS.map((kind) => this.#repeat(kind)));
    const ended = this.#kinds.then(() => new Promise<never>(() => {}));
    this.lost = Promise.race([fleet.lost, ended]);
    this.lost.catch(() => {});
  }

  /**
   * @param redis a URL; of a cluster, those of its nodes with commas between them
   * @param say called with each line that people should see
   * @param signal ends the wait for the processes
   * @throws PieceworkError FLEET
   */
  static async start(
    redis: string,
    queue: string,
    say: (line: string) => void,
    signal: AbortSignal,
  ): Promise<LivingExample> {
    const fleet = await WorkerFleet.start({
      ...{ redis, queue, handler: HANDLERS, processes: PROCESSES, signal, onErrorLine: say },
      // When it is closed, nobody needs the results of what runs.
      flags: ['--concurrency', String(SLOTS), '--drain-ms', '0', '--log-level', 'error'],
      onRestart: (restart) => say(restartText(restart)),
    });
    return new LivingExample(fleet, new Piecework({ redis, queue }));
  }

  /** Ends all of it at once, as when Redis has ended. `close` waits for that. */
  kill(): void {
    this.#fleet.kill();
    // A call in progress would be tried again for a while.
    void this.#pw.close();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#kinds.catch(() => {});
    await this.#fleet.close();
    await this.#pw.close();
  }

  async #repeat({ name, items, options }: Kind): Promise<void> {
    const { signal } = this.#closing;
    try {
      for (let n = 1; ; n++) {
        const more = { id: `${name}-${n}`, task: name, retentionMs: RETENTION_MS };
        const request = await this.#pw.submit(items, { ...options, ...more });
        await request.completion({ signal }).catch((error: unknown) => {
          if (!(error instanceof DroppedError)) throw error;
        });
        await sleep(PAUSE_MS, undefined, { signal });
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }
}
