import type { Scene } from '../../support/given.js';
import { Actor, type Call, call, type Surroundings } from './actor.js';

/** Cancels and drops requests. */
export class Admin extends Actor {
  constructor(around: Surroundings) {
    super(around);
  }

  protected choose(what: number): Call | undefined {
    const { scenes, pictures } = this.around;
    const scene = scenes[what % scenes.length] as Scene;
    const generation = pictures.get(scene.id)?.generation ?? 0;
    if (what % 16 === 5) return this.announce(scene, generation, this.drop(scene, generation));
    if (what % 8 !== 1) return undefined;
    return this.announce(scene, generation, this.cancel(scene, generation));
  }

  drop(scene: Scene, generation: number): Call {
    return call(
      'drop',
      () => scene.request.drop(generation),
      (dropped) => {
        if (dropped.verdict === 'dropped') this.finish(scene, dropped.generation, 'dropped');
      },
    );
  }

  cancel(scene: Scene, generation: number): Call {
    return call(
      'cancel',
      () => scene.request.cancel(generation),
      (cancelled) => {
        if (cancelled.verdict === 'complete') this.finish(scene, generation, cancelled.outcome);
        else if (cancelled.verdict === 'cancelling') this.scheduleTend(scene, generation, 0);
      },
    );
  }
}
