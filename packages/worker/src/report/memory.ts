import { type Connection, type MemoryUse, TIGHT_MEMORY } from '@piecework/protocol';
import type { Logger } from 'pino';

/** Below this part of `maxmemory` a server that was tight has room again. */
const ROOM = 0.8;
/** A server is asked again after this time, and in a big fleet after so long for each worker, in ms. */
const ASK_MS = 1_000;
const ASK_PER_WORKER_MS = 10;
/** The same for a server without a limit, or that refuses to answer. */
const SELDOM_MS = 30_000;
/** It is asked sooner when a worker has settled its share of half the room, but at least this part of `maxmemory`. */
const LEAST_SHARE = 0.005;

/** The memory of one server, as it answered last. */
export class ServerMemory {
  readonly #address: string;
  readonly #read: () => Promise<MemoryUse | undefined>;
  readonly #fleet: () => number;
  readonly #logger: Logger;
  #use: MemoryUse | undefined;
  #tight = false;
  /** When it was asked last, as performance.now(). */
  #askedAt = Number.NEGATIVE_INFINITY;
  /** Characters of results that this process has settled since. */
  #settled = 0;
  #asking: Promise<void> | undefined;

  constructor(
    address: string,
    read: () => Promise<MemoryUse | undefined>,
    fleet: () => number,
    logger: Logger,
  ) {
    this.#address = address;
    this.#read = read;
    this.#fleet = fleet;
    this.#logger = logger;
  }

  /** Whether requests are not read whose results need room. */
  get tight(): boolean {
    return this.#tight;
  }

  /** A sentence for `health`; '' when it has room. */
  get said(): string {
    if (!this.#tight || !this.#use) return '';
    const { used, most } = this.#use;
    const where = this.#address === 'standalone' ? 'Redis' : `Redis at ${this.#address}`;
    const parts = `${megabytes(used)} of ${megabytes(most)} are used`;
    return `${where} is nearly full (${parts}): requests whose results need room are read no further`;
  }

  settled(characters: number): void {
    this.#settled += characters;
  }

  /** Whether it has to be asked before anything is read from it. */
  get isStale(): boolean {
    const age = performance.now() - this.#askedAt;
    if (!this.#use || this.#use.most === 0) return age >= SELDOM_MS;
    const fleet = Math.max(1, this.#fleet());
    const { used, most } = this.#use;
    const share = Math.max((TIGHT_MEMORY * most - used) / 2, LEAST_SHARE * most) / fleet;
    return this.#settled >= share || age >= Math.max(ASK_MS, fleet * ASK_PER_WORKER_MS);
  }

  /** Asks it; calls at the same time share the answer. Never rejects. */
  refresh(): Promise<void> {
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  async #ask(): Promise<void> {
    this.#askedAt = performance.now();
    this.#settled = 0;
    // Without an answer, or the right to ask, nothing is known, and nothing is held.
    const use = await this.#read().catch(() => undefined);
    this.#use = use;
    const part = use && use.most > 0 ? use.used / use.most : 0;
    const tight = part >= (this.#tight ? ROOM : TIGHT_MEMORY);
    // cure: a request waits for the room that its results need
    if (tight === this.#tight) return;
    this.#tight = tight;
    const about = { server: this.#address, ...use };
    if (tight)
      this.#logger.warn(
        about,
        'Redis is nearly full: requests whose results need room are read no further until it has some; raise maxmemory, drop complete requests, or have results discarded',
      );
    else this.#logger.info(about, 'Redis has room again');
  }
}

const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`;

/** The memory of all servers that have requests of one worker; each server is asked by itself. */
export class Memory {
  readonly #connection: Connection;
  readonly #fleet: () => number;
  readonly #logger: Logger;
  readonly #servers = new Map<string, ServerMemory>();

  constructor(connection: Connection, fleet: () => number, logger: Logger) {
    this.#connection = connection;
    this.#fleet = fleet;
    this.#logger = logger;
  }

  /** Of the server that has `key`, as far as that is known. */
  of(key: string): ServerMemory {
    const address = this.#connection.knownAddressOf(key) ?? '';
    let server = this.#servers.get(address);
    if (!server) {
      const read = () => this.#connection.memoryOf(address);
      server = new ServerMemory(address, read, this.#fleet, this.#logger);
      this.#servers.set(address, server);
    }
    return server;
  }

  /** Sentences for `health` about servers that are nearly full; '' when none is. */
  get said(): string {
    const words = [...this.#servers.values()].map(({ said }) => said);
    return words.filter((word) => word !== '').join('; ');
  }
}
