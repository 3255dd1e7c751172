import type { Minted, RequestOutcome } from '@piecework/protocol';
import type { Scene } from '../support/given.js';
import type { World } from './world.js';

/* Who acts in the world: one call at a time, when told, and knows only what its replies said. */

/** A call with its arguments fixed, so that it can be sent again. */
export type Call = {
  readonly send: () => Promise<unknown>;
  readonly heard: (reply: never) => void;
};
export const call = <T>(send: () => Promise<T>, heard: (reply: T) => void = () => {}): Call => ({
  send,
  heard,
});

/** What an actor does next, decided when its turn comes; nothing: there was nothing to do. */
export type Deed = (what: number) => Call | undefined;

export abstract class Actor {
  alive = true;
  protected readonly todo: Deed[] = [];
  protected constructor(readonly world: World) {}

  protected abstract choose(what: number): Call | undefined;

  next(what: number): Call | undefined {
    while (this.todo.length > 0) {
      const chosen = (this.todo.shift() as Deed)(what);
      if (chosen) return chosen;
    }
    return this.choose(what);
  }

  die(): void {
    this.alive = false;
    this.todo.length = 0;
  }

  protected push(scene: Scene, minted: Omit<Minted, 'id'>): void {
    if (minted.mint > 0)
      this.todo.push(() => call(() => scene.queue.push({ ...minted, id: scene.id })));
  }

  protected finish(scene: Scene, generation: number, outcome: RequestOutcome | 'gone' | 'dropped') {
    this.todo.push(() => call(() => scene.queue.finish(scene.id, generation, outcome)));
  }
}
