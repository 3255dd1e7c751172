import { type Minted, type RequestOutcome, TIMES } from '@piecework/protocol';
import type { Scene } from '../../support/given.js';
import type { Picture } from '../../support/peek.js';
import type { Runs } from '../runs.js';

/*
 * Actors that keep to docs/protocol.md and to nothing else. Each makes one call at a time, when its driver asks for
 * the next one, and knows only what its replies said. A driver may send a call twice, send it much later, or let
 * the actor die of it: what an actor does next never depends on how it is driven.
 */

/** A call with its arguments fixed, so that it can be sent again. */
export interface Call {
  /** Who makes it and what it is, for the log of a history. */
  readonly name: string;
  readonly send: () => Promise<unknown>;
  readonly onReply: (reply: never) => void;
}

export const call = <T>(
  name: string,
  send: () => Promise<T>,
  onReply: (reply: T) => void = () => {},
): Call => ({ name, send, onReply });

/** What an actor can see besides its replies. */
export interface Surroundings {
  /** The requests, all of one queue. */
  readonly scenes: readonly Scene[];
  /** Each request as it was read last, by its id. */
  readonly pictures: ReadonlyMap<string, Picture>;
  /** Time by the clocks of the processes, which nobody sets. */
  readonly time: number;
  /** Whether no more faults happen: from then on handlers succeed. */
  readonly healing: boolean;
  readonly runs: Runs;
}

/** Decides the next call when the actor's turn comes; undefined when there is nothing to do. */
type Deferred = (what: number) => Call | undefined;

export abstract class Actor {
  alive = true;
  /** What follows from earlier replies, in order. */
  protected readonly todo: Deferred[] = [];
  protected readonly around: Surroundings;

  protected constructor(around: Surroundings) {
    this.around = around;
  }

  /** The next call when nothing follows from an earlier one. `what` chooses among what is possible. */
  protected abstract choose(what: number): Call | undefined;

  next(what: number): Call | undefined {
    while (this.todo.length > 0) {
      const chosen = (this.todo.shift() as Deferred)(what);
      if (chosen) return chosen;
    }
    return this.choose(what);
  }

  /**
   * Makes a call, again when it fails, and then those that follow from its reply, until one of them fails. Answers
   * how many followed.
   */
  async perform(first: Call): Promise<number> {
    first.onReply((await first.send().catch(() => first.send())) as never);
    for (let followed = 0; ; followed += 1) {
      const next = this.todo.shift()?.(0);
      if (!next) return followed;
      try {
        next.onReply((await next.send()) as never);
      } catch {
        return followed;
      }
    }
  }

  /** Its process ends: nothing that followed from earlier replies is done. */
  die(): void {
    this.alive = false;
    this.todo.length = 0;
  }

  protected push(scene: Scene, minted: Omit<Minted, 'id'>): void {
    if (minted.mint > 0)
      this.todo.push(() => call('push', () => scene.queue.push({ ...minted, id: scene.id })));
  }

  protected finish(scene: Scene, generation: number, outcome: RequestOutcome | 'gone' | 'dropped') {
    this.todo.push(() => call('finish', () => scene.queue.finish(scene.id, generation, outcome)));
  }

  /** Has the request tended within a minute, and then makes `change`, if there is one. */
  announce({ queue, id }: Scene, generation: number, change?: Call): Call {
    const send = () => queue.scheduleTend(id, generation, 0, TIMES.slowMs);
    return call('schedule-tend', send, () => {
      if (change) this.todo.unshift(() => change);
    });
  }

  protected scheduleTend({ queue, id }: Scene, generation: number, at: number): void {
    this.todo.push(() => call('schedule-tend', () => queue.scheduleTend(id, generation, at)));
  }
}
