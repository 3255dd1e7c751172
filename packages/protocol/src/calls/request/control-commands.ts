import { TIMES } from '../../contract/defaults.js';
import { type Place, placed } from '../../contract/lanes.js';
import { encodeLimit } from '../../contract/limit.js';
import { type Reply, run } from '../../scripts/run-script.js';
import { recentEnds } from './recent-ends.js';
import { RequestReads } from './request-reads.js';

/** What an operator may change of a request while it runs. What is left out stays as it is. */
export interface RequestChanges {
  /** null: none. */
  readonly limit?: number | null | undefined;
  readonly priority?: number | undefined;
  readonly toleratedFailures?: string | undefined;
  readonly paused?: boolean | undefined;
}

/** The current generation of an id. A tombstone ('dropped', 'void') counts as one. */
export interface CurrentGeneration {
  readonly status: string;
  readonly generation: number;
  /** The first one of this use of the id. */
  readonly first: number;
  readonly queue: string;
  readonly paused: boolean;
}

type Changed = Reply<'update'>;
type Ok = Extract<Changed, { readonly verdict: 'ok' }>;

export type ControlReply = (Omit<Ok, 'priority'> & Place) | Exclude<Changed, Ok>;

/** What any client may do to a request while it runs. Hash slot of `{<id>}`. */
export class ControlCommands extends RequestReads {
  /** The current generation of the id; null when none is remembered. One round trip. */
  async current(): Promise<CurrentGeneration | null> {
    const names = ['status', 'generation', 'first', 'queue', 'paused'] as const;
    const { status, generation, first, ...seen } = await this.fields(...names);
    if (status === '') return null;
    const paused = seen.paused === '1';
    const numbers = { generation: Number(generation), first: Number(first || generation) };
    return { status, ...numbers, queue: seen.queue, paused };
  }

  /** No permit is granted and no token minted from here on; running handlers may end. */
  pause(generation: number): Promise<ControlReply> {
    return this.update(generation, { paused: true });
  }

  /** Ends a pause. The caller pushes the minted tokens. */
  resume(generation: number): Promise<ControlReply> {
    return this.update(generation, { paused: false });
  }

  /** Holds the request back for `holdMs`; 'memory': as its results lack room. The reply says until when, in server time. */
  hold(generation: number, holdMs: number, reason: '' | 'memory' = ''): Promise<Reply<'hold'>> {
    return run(this.connection.client, 'hold', this.keys, { generation, holdMs, reason });
  }

  /** Makes these changes. The caller pushes the minted tokens. */
  async update(generation: number, changes: RequestChanges): Promise<ControlReply> {
    const { limit, priority, toleratedFailures = '', paused } = changes;
    const args = {
      generation,
      limit: limit === undefined ? undefined : encodeLimit(limit),
      priority,
      toleratedFailures,
      paused: paused === undefined ? undefined : Number(paused),
    };
    const reply = await run(this.connection.client, 'update', this.keys, args);
    return reply.verdict === 'ok' ? placed(reply) : reply;
  }

  /** Cancels: idle work at once, running work keeps its outcome if it succeeds. */
  cancel(generation: number): Promise<Reply<'cancel'>> {
    const { channel } = this.keys;
    return run(this.connection.client, 'cancel', this.keys, { generation, channel });
  }

  /** Removes everything of one generation but a tombstone. @param of default: the current generation */
  async drop(of?: number): Promise<Reply<'drop'>> {
    const generation = of ?? (await this.state())?.generation ?? 0;
    const { channel } = this.keys;
    const args = { generation, channel, tombstoneMs: TIMES.tombstoneMs };
    const reply = await run(this.connection.client, 'drop', this.keys, args);
    // cure: what was dropped is not read from memory
    recentEnds(this.connection).forget(this.keys.id);
    return reply;
  }
}
