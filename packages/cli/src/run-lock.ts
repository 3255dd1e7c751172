import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { type Connection, PieceworkError, pause, queueKeys, redisError } from '@piecework/protocol';
import { nanoid } from 'nanoid';

/**
 * At one request works one `piecework run`: two of them would start the work twice over and write into the same
 * files. Who runs says so under a key with a lease, as a run that is killed takes nothing back. If its process is
 * known to have ended, the next one does not wait for the lease.
 */

/** How long a run is believed without a sign of life, in ms. */
const LEASE_MS = 15_000;
const RENEW_MS = LEASE_MS / 3;
/** How often it is looked whether a run is still there, in ms. */
const LOOK_MS = 500;

interface Runner {
  readonly token: string;
  readonly host: string;
  readonly pid: number;
  /** Names where its process id means something: this boot of this machine, or of a container on it. */
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
  /** Rejects (UNDER_WAY) when another run took over, as when this process stood still beyond its lease. */
  readonly lost: Promise<never>;
  /** Whether it is known that another run, of this machine, held it and has ended. */
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
    // One that fails is tried again at the next.
    this.#renewal = setInterval(() => void this.#renew().catch(() => {}), RENEW_MS);
  }

  /**
   * Takes the lock of a request. Of a run that may have ended it is awaited that it gives a sign of life, or that
   * its lease ends; `onWait` is told so. The connection stays the caller's.
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
      if (!other) return new RunLock(connection, id, key, runner, false);
      const known = other.machine === MACHINE;
      if (known && !runs(other.pid)) {
        // Another one may have seen the same: who is not in it at the first renewal has lost.
        await set(connection, key, runner);
        // Its own is found when the reply was lost.
        return new RunLock(connection, id, key, runner, other.token !== runner.token);
      }
      if (known || performance.now() > endMs) throw underWay(id, other);
      if (!waits)
        onWait(`${id} was run on ${other.host}; waiting for a sign of that run, or its end`);
      waits = true;
      await pause(LOOK_MS);
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
      // Written over by this call, which only that one's next renewal would find.
      if (fresh) await set(this.#connection, this.#key, found);
      return;
    }
    // It went with its lease: taken again, unless somebody else was faster.
    if (!found && fresh) await set(this.#connection, this.#key, this.#runner, 'NX');
    this.#renewedMs = begunMs;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#renewal);
    if (this.#isLost || performance.now() - this.#renewedMs > LEASE_MS) return;
    await this.#connection.client.del(this.#key).catch(() => {});
  }
}

/** Writes it; answers what stood there. */
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
  const message = `${id} is being run already, by process ${pid} on ${host}; piecework watch ${id} shows how far it is`;
  return new PieceworkError(message, { code: 'UNDER_WAY', retryable: true });
}

/** Whether a process of this machine runs. */
export function runs(pid: number): boolean {
  // This process has only begun: one of its number has ended, as in a container that was started again.
  if (pid === process.pid) return false;
  try {
    process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
  try {
    // What was killed keeps its number until its parent asks for it.
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return true;
  }
}

/** Where process ids mean the same. Only Linux can have several such places on one host. */
const MACHINE = ((): string => {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return `${boot} ${readlinkSync('/proc/self/ns/pid')}`;
  } catch {
    return hostname();
  }
})();
