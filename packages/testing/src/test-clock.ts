import {
  Agenda,
  type Connection,
  checkOption,
  option,
  QueueCommands,
  type Redis,
} from '@piecework/protocol';
import {
  installTestClock,
  releasedScripts,
  removeTestClock,
  setClockOffset,
} from '@piecework/protocol/testing';
import { movedScripts } from './moved-scripts.js';

/** Longest step while something runs, in ms. A longer gap between two ticks would count as an outage of Redis. */
const STEP_MS = 10_000;
/** Requests of which something runs are on the agenda within this time, in ms. */
const AUDIT_MS = 15_000;
const DAY_MS = 86_400_000;

/**
 * The clock of Piecework's scripts, by which delays, backoffs, leases and deadlines go. It starts at the server's time
 * and runs on; `advance` moves it ahead at once. One clock for all that this process does with Piecework. Not moved:
 * the expiry of keys (`retentionMs`, `dedupe`), `attemptTimeoutMs` and `timeoutMs`, `Date`, and other processes.
 */
export class TestClock {
  readonly #connection: Connection;
  readonly #before: ReturnType<typeof setClockOffset>;
  #aheadMs = 0;

  /** @internal */
  constructor(connection: Connection) {
    this.#connection = connection;
    installTestClock(movedScripts(releasedScripts));
    this.#before = setClockOffset(() => this.#aheadMs);
  }

  /** How far the clock is ahead of the server's, in ms. */
  get aheadMs(): number {
    return this.#aheadMs;
  }

  /** The time of this clock, in ms since 1970: what `runAt` is compared with. */
  async now(): Promise<number> {
    const [seconds, micros] = await this.#client.time();
    return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000) + this.#aheadMs;
  }

  /**
   * Moves the clock ahead by `ms`, and starts on the way, in the order of their times, whatever becomes due. Does not
   * wait for handlers: what they do, such as another retry, is late when more has become due meanwhile. A worker whose
   * handlers run while the clock moves beyond its `leaseMs` loses them, as if its process had been frozen.
   * @param ms up to a year
   * @throws InvalidOptionError
   */
  async advance(ms: number): Promise<void> {
    checkOption('ms', ms, option.ms(0, 366 * DAY_MS));
    const target = this.#aheadMs + ms;
    do {
      const leftMs = target - this.#aheadMs;
      const nextMs = await this.#untilNext();
      const stepMs = nextMs <= AUDIT_MS ? Math.min(nextMs, STEP_MS) : nextMs;
      this.#aheadMs += Math.max(Math.min(leftMs, 1), Math.min(stepMs, leftMs));
      await this.tick();
    } while (this.#aheadMs < target);
  }

  /** Starts what is due now, instead of within some seconds. */
  async tick(): Promise<void> {
    for (const key of await this.#agendas()) {
      const queue = key.slice(1, key.indexOf('}'));
      let problem: unknown;
      const onError = (error: unknown) => {
        problem ??= error;
      };
      const agenda = new Agenda(this.#connection, new QueueCommands(this.#connection, queue), {
        onError,
      });
      // Answers 0 when it has claimed as much as it can.
      while ((await agenda.tick()) === 0 && problem === undefined);
      if (problem !== undefined) throw problem;
    }
  }

  /** @internal From here on the process goes by the time of the server again. */
  close(): void {
    removeTestClock();
    setClockOffset(this.#before);
  }

  /** How long until the next request has to be tended, in ms; Infinity: never. */
  async #untilNext(): Promise<number> {
    const now = await this.now();
    const times = await Promise.all(
      (await this.#agendas()).map((key) =>
        this.#client.zrangebyscore(key, `(${now}`, '+inf', 'WITHSCORES', 'LIMIT', 0, 1),
      ),
    );
    const next = times.map(([, at]) => Number(at ?? Number.POSITIVE_INFINITY));
    return Math.max(0, Math.min(Number.POSITIVE_INFINITY, ...next) - now);
  }

  /** The agendas of all queues: the server is the kit's own, and small. */
  #agendas(): Promise<string[]> {
    return this.#client.keys('{*}:agenda');
  }

  get #client(): Redis {
    return this.#connection.client as Redis;
  }
}
