import type { Claim, Tended } from '@piecework/protocol';
import type { Scene } from '../../support/given.js';
import { Actor, type Call, call, type Surroundings } from './actor.js';

/** Ticks: claims what is due on the agenda, tends each claim and writes back what came of it. */
export class Ticker extends Actor {
  constructor(around: Surroundings) {
    super(around);
  }

  get idle(): boolean {
    return this.todo.length === 0;
  }

  protected choose(): Call {
    const { queue } = this.around.scenes[0] as Scene;
    return call(
      'tick',
      () => queue.tick('', ''),
      ({ claims, resumedAt, now }) => {
        for (const claim of claims) this.todo.push(() => this.#tend(claim, resumedAt, now));
      },
    );
  }

  #tend(claim: Claim, resumedAt: number, tickedAt: number): Call {
    const scene = this.around.scenes.find(({ id }) => id === claim.id) as Scene;
    return call(
      'tend',
      () => scene.request.tend(claim.generation, claim.passed, resumedAt, undefined, tickedAt),
      (tended) => {
        if (tended.verdict === 'ok') {
          const written: Tended = tended;
          this.todo.unshift(() => call('write-back', () => scene.queue.writeBack(claim, written)));
        } else {
          const outcome = tended.verdict === 'complete' ? tended.outcome : 'gone';
          this.finish(scene, claim.generation, outcome);
        }
      },
    );
  }
}
