import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import {
  type Connection,
  PieceworkError,
  pause,
  processRuns,
  queueKeys,
  redisError,
  renewAfterMs,
} from '@piecework/protocol';
import { nanoid } from 'nanoid';

/**
 * Only one `piecework run` at a time works on a request: two would start the work twice and write into the same files.
 * A run sets a key that expires, as a run that is killed cannot delete it. If the process of the last run is known to
 * have ended, the next run does not wait for the key to expire.
 */

/** How long the lock lasts unless it is renewed, in ms. */
const LEASE_MS = 15_000;
const RENEW_MS = renewAfterMs(LEASE_MS);
/** How often a run that waits for the lock tries again, in ms. */
const RETRY_MS = 500;

interface Runner {
  readonly token: string;
  readonly host: string;
  readonly pid: number;
  /** Where the process id is valid: this boot of this machine, or a container on it. */
  readonly machine: string;
}

export class RunLock implements AsyncDisposable {
  readonly #connection: Connection;
  readonly #id: string;
  readonly #key: string;
  readonly #runner: Runner;
  readonly #renewal: NodeJS.Timeout;
  #renewedMs = performance.now();
  #isLost = false;
  #onLost: ((error: PieceworkError) => void) | undefined;
  /** Rejects (UNDER_WAY) when another run has taken over, for example after this process was suspended for too long. */
  readonly lost: Promise<never>;
  /** Whether the lock belonged to another run on this machine that is known to have ended. */
  readonly followsEnded: boolean;

  private constructor(
    connection: Connection,
    id: string,
    key: string,
    runner: Runner,
    followsEnded: boolean,
  ) {
    this.followsEnded = followsEnded;
    this.#connection = connection;
    this.#id = id;
    this.#key = key;
    this.#runner = runner;
    this.lost = new Promise((_, reject) => {
      this.#onLost = reject;
    });
    this.lost.catch(() => {});
    // A renewal that fails is tried again the next time.
    this.#renewal = setInterval(() => void this.#renew().catch(() => {}), RENEW_MS);
  }

  /**
   * Takes the lock of a request. If another run has it that may have ended, this waits until that run renews it or
   * until it expires, and says so by `onWait`. The caller closes the connection.
   * @throws PieceworkError UNDER_WAY · ConnectionError, ServerError
   */
  static async take(
    connection: Connection,
    queue: string,
    id: string,
    onWait: (text: string) => void,
  ): Promise<RunLock> {
    const key = queueKeys(queue).runner(id);
    const runner = { token: nanoid(12), host: hostname(), pid: process.pid, machine: MACHINE };
    const endMs = performance.now() + LEASE_MS + RENEW_MS;
    let waits = false;
    for (;;) {
      const other = await set(connection, key, runner, 'NX');
      // cure: one run of a name at a time
      if (!other) return new RunLock(connection, id, key, runner, false);
      const known = other.machine === MACHINE;
      if (known && !processRuns(other.pid)) {
        // Another run may do the same at this moment: the one that is not in the key at its first renewal has lost.
        await set(connection, key, runner);
        // After a lost reply, the call is repeated and finds its own token.
        return new RunLock(connection, id, key, runner, other.token !== runner.token);
      }
      if (known || performance.now() > endMs) throw underWay(id, other);
      if (!waits)
        onWait(
          `${id} was run on ${other.host}; waiting until that run gives a sign of life or its lock expires`,
        );
      waits = true;
      await pause(RETRY_MS);
    }
  }

  async #renew(): Promise<void> {
    const fresh = performance.now() - this.#renewedMs < LEASE_MS;
    const begunMs = performance.now();
    const found = await set(this.#connection, this.#key, this.#runner, fresh ? 'XX' : 'NX');
    if (found && found.token !== this.#runner.token) {
      clearInterval(this.#renewal);
      this.#isLost = true;
      this.#onLost?.(underWay(this.#id, found));
      // This call has overwritten the other run's value: put it back.
      if (fresh) await set(this.#connection, this.#key, found);
      return;
    }
    // The key has expired: take it again, unless another run was faster.
    if (!found && fresh) await set(this.#connection, this.#key, this.#runner, 'NX');
    this.#renewedMs = begunMs;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#renewal);
    if (this.#isLost || performance.now() - this.#renewedMs > LEASE_MS) return;
    await this.#connection.client.del(this.#key).catch(() => {});
  }
}

/** Sets the key. @returns its value before */
async function set(
  { client }: Connection,
  key: string,
  runner: Runner,
  when?: 'NX' | 'XX',
): Promise<Runner | undefined> {
  const text = JSON.stringify(runner);
  try {
    const put = () => {
      if (when === 'NX') return client.set(key, text, 'PX', LEASE_MS, 'NX', 'GET');
      if (when === 'XX') return client.set(key, text, 'PX', LEASE_MS, 'XX', 'GET');
      return client.set(key, text, 'PX', LEASE_MS, 'GET');
    };
    const before = await put();
    return before === null ? undefined : (JSON.parse(before) as Runner);
  } catch (error) {
    throw redisError(error, 'say who runs');
  }
}

function underWay(id: string, { host, pid }: Runner): PieceworkError {
  const message = `${id} is being run already, by process ${pid} on ${host}; piecework watch ${id} shows its progress`;
  return new PieceworkError(message, { code: 'UNDER_WAY', retryable: true });
}

/** Where a process id is valid. Only Linux can have several such places on one host. */
const MACHINE = ((): string => {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return `${boot} ${readlinkSync('/proc/self/ns/pid')}`;
  } catch {
    return hostname();
  }
})();
