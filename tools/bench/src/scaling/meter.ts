import { Connection, QueueCommands } from '@piecework/protocol';
import { RequestCommands } from '@piecework/protocol/testing';
import type { Redis } from 'ioredis';
import { difference, redisFigures } from '../redis-figures.js';
import type { CallCost } from './costs.js';

/** One of the connections that call side by side, each sending its next call after a reply. */
export interface Lane {
  readonly number: number;
  readonly connection: Connection;
  readonly queue: QueueCommands;
  readonly request: (id: string) => RequestCommands;
}

/**
 * Measures calls by the CPU time of the server, not by the clock, so that a busy machine changes
 * little. There are many connections, because a server under load finds several of them readable
 * in one turn, which costs less than one at a time.
 */
export class Meter {
  readonly lanes: readonly Lane[];
  readonly #probe: Redis;

  constructor(url: string, probe: Redis, queue: string, lanes: number) {
    this.#probe = probe;
    this.lanes = Array.from({ length: lanes }, (_, number) => {
      const connection = Connection.open(url);
      return {
        number,
        connection,
        queue: new QueueCommands(connection, queue),
        request: (id) => new RequestCommands(connection, id),
      };
    });
  }

  /** What `calls` calls cost, shared out among all lanes; `call` receives its number within its lane. */
  async measure(
    calls: number,
    call: (lane: Lane, turn: number) => Promise<unknown>,
  ): Promise<CallCost> {
    const turns = Math.max(1, Math.ceil(calls / this.lanes.length));
    const before = await redisFigures(this.#probe);
    await this.each(async (lane) => {
      for (let turn = 0; turn < turns; turn += 1) await call(lane, turn);
    });
    const { cpuMicros, costs } = difference(before, await redisFigures(this.#probe));
    const made = turns * this.lanes.length;
    // What a script calls is in its own time already; no script blocks.
    const sent = ['evalsha', 'blmpop'];
    if (!costs['evalsha']) sent.push('xrange', 'xpending');
    const inside = sent.reduce((sum, name) => sum + (costs[name]?.micros ?? 0), 0);
    return { micros: cpuMicros / made, insideMicros: inside / made, calls: made };
  }

  async each(work: (lane: Lane) => Promise<void>): Promise<void> {
    await Promise.all(this.lanes.map(work));
  }

  async close(): Promise<void> {
    await this.each(({ connection }) => connection.close());
  }
}
