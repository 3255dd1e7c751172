import { TIMES } from '../../contract/defaults.js';
import { type Place, placed } from '../../contract/lanes.js';
import { run } from '../../scripts/run-script.js';
import type { Complete, Gone } from './request-outcome.js';
import { RequestReads } from './request-reads.js';

export interface Tended extends Place {
  readonly verdict: 'ok';
  readonly mint: number;
  readonly epoch: number;
  readonly before: string;
  readonly next: number;
  readonly parked: string;
  /** How many sub-requests it took back from workers without a permit. */
  readonly reclaimed?: number;
  readonly crashed?: Crashed;
}

/** Sub-requests that failed because their workers ended too often: how many, and the first of their indexes. */
export interface Crashed {
  readonly count: number;
  readonly indexes: readonly number[];
}

/** What the agenda does to a request that is due. Hash slot of `{<id>}`. */
export class TendCommands extends RequestReads {
  /**
   * Tends this request after a tick. `resumedAt`: when Redis last came back, from the reply of the tick.
   * `auditMs`: until the next tend while workers may have permits. `tickedAt`: when the tick was; 0: not known.
   * `gapAt`, `gapMs`: the longest gap between two ticks that still matters.
   */
  async tend(
    generation: number,
    passed: string,
    resumedAt = 0,
    auditMs: number = TIMES.auditMs,
    tickedAt = 0,
    { gapAt, gapMs } = { gapAt: 0, gapMs: 0 },
  ): Promise<Tended | (Complete & { readonly crashed?: Crashed }) | Gone> {
    const { channel } = this.keys;
    const { tombstoneMs, awayMs } = TIMES;
    const reply = await run(this.connection.client, 'tend', this.keys, {
      ...{ generation, passed, channel, auditMs, tombstoneMs, resumedAt, tickedAt, awayMs },
      ...{ gapAt, gapMs },
    });
    if (reply.verdict === 'gone') return reply;
    const { crashed, ...rest } = reply;
    if (rest.verdict === 'complete')
      return { ...rest, spentAt: rest.spentAt || undefined, ...crashedIn(crashed) };
    const { task, parked, ...tended } = rest;
    return { ...placed(tended), parked: parked ? `+${task}` : '', ...crashedIn(crashed) };
  }

  /** Unlinks the keys of this generation if its retention has ended; false: not yet, so try again later. */
  async unlinkSpent(generation: number): Promise<boolean> {
    const { client } = this.connection;
    return (await run(client, 'unlink-spent', this.keys, { generation })).verdict !== 'kept';
  }
}

function crashedIn(words = ''): { crashed?: Crashed } {
  const [count = 0, ...indexes] = words.split(' ').map(Number);
  return count > 0 ? { crashed: { count, indexes } } : {};
}
