import type { Place } from '../../contract/lanes.js';
import type { Client } from '../../redis/client.js';
import { callOf, type Reply, run, runCall, type ScriptCall } from '../../scripts/run-script.js';
import { QueueReads } from './queue-reads.js';

/** Tokens that a script on the request side minted, to be pushed on the queue side. */
export interface Minted extends Place {
  readonly id: string;
  readonly generation: number;
  readonly mint: number;
  readonly epoch: number;
}

/** What `should-yield` needs to know of an expedited request. */
export interface Expedited {
  readonly due: number;
  readonly generation: number;
}

/** Who waits beside a request: 'keep': nobody · 'share': only equals · 'leave': somebody who goes before it. */
export type Contention = Reply<'should-yield'>['verdict'];

/** The answer of the queue side to a call about an open request; 'closed': it has no such request open. */
export type QueueReply = 'done' | 'closed';

/** The tokens of a queue: any role pushes minted ones; workers take and exchange them. Hash slot of `{<queue>}`. */
export class QueueTokens extends QueueReads {
  /**
   * Pushes minted tokens, or none; 'closed' when the request is not open. A caller that knows of the request
   * calls this through `reopenIfClosed`. `client`: the connection; a WAIT counts only the writes of its own.
   */
  async push(minted: Minted, client: Client = this.connection.client): Promise<QueueReply> {
    const { verdict } = await runCall(client, this.pushCall(minted));
    return verdict === 'closed' ? 'closed' : 'done';
  }

  /** The call that `push` sends, for a caller that sends it together with other scripts. */
  pushCall(minted: Minted): ScriptCall<'push'> {
    const { open, pushed } = this.keys;
    const { id, generation, mint, epoch, priority } = minted;
    return callOf(
      'push',
      { open, pushed, list: this.lanes.listOf(minted) },
      { id, generation, epoch, count: mint, priority, ...this.lane(minted) },
    );
  }

  /**
   * Returns minted tokens and takes up to `take` others, in one call. It would take the returned tokens last, so the
   * lists behind theirs are not named. With nothing to return it only takes.
   * `onClosed`: the request is not open, so nothing was returned.
   */
  async exchange(minted: Minted, take: number, onClosed = () => {}): Promise<readonly string[]> {
    if (minted.mint === 0) return this.#pop(take);
    const { open, pushed } = this.keys;
    const { id, generation, mint, epoch, priority } = minted;
    const { verdict, tokens } = await run(
      this.connection.client,
      'exchange',
      { open, pushed, lists: this.lanes.upTo(minted) },
      { id, generation, epoch, count: mint, priority, take, ...this.lane(minted) },
    );
    if (verdict === 'closed') onClosed();
    return tokens;
  }

  /** Whether other requests wait, and whether one of them goes before this one. */
  async shouldYield(id: string, priority: number, expedited?: Expedited): Promise<Contention> {
    const { due = 0, generation = 0 } = expedited ?? {};
    const lists = this.lanes.upTo({ priority, due });
    const args = due ? { id, generation, due } : { id };
    return (await run(this.connection.client, 'should-yield', { lists }, args)).verdict;
  }

  /** Parks a request whose task this worker does not serve. */
  async park(id: string, generation: number, task: string): Promise<QueueReply> {
    const args = { id, generation, task };
    const { verdict } = await run(this.connection.client, 'park', this.keys, args);
    return verdict === 'closed' ? 'closed' : 'done';
  }

  /** The additional arguments for a place in a lane. */
  protected lane({ due }: Place): { readonly due?: number; readonly channel?: string } {
    return due ? { due, channel: this.keys.control } : {};
  }

  async #pop(take: number): Promise<string[]> {
    const { lists } = this.lanes;
    const popped = await this.read((client) =>
      client.call('lmpop', lists.length, ...lists, 'RIGHT', 'COUNT', take),
    );
    return (popped as [string, string[]] | null)?.[1] ?? [];
  }
}
