import { ControlCommands, type ControlReply } from '@piecework/protocol';
import type { Scene } from '../../support/given.js';
import { Actor, type Call, call, type Surroundings } from './actor.js';

/** Values that a priority is changed to. */
export const PRIORITIES = [10, 50, 90];

/** Pauses, resumes, holds and changes requests while they run. Its push comes before its schedule-tend. */
export class Operator extends Actor {
  constructor(around: Surroundings) {
    super(around);
  }

  protected choose(what: number): Call | undefined {
    const { scenes, pictures } = this.around;
    const scene = scenes[what % scenes.length] as Scene;
    const { connection, id } = scene;
    const generation = pictures.get(id)?.generation ?? 0;
    const control = new ControlCommands(connection, id);
    const drawn = Math.floor(what / 8);
    const update = (change: Parameters<typeof control.update>[1]) =>
      this.#continuing('update', scene, generation, () => control.update(generation, change));
    switch (what % 8) {
      case 0:
      case 1:
        return call('pause', () => control.pause(generation));
      case 2:
      case 3:
        return this.#continuing('resume', scene, generation, () => control.resume(generation));
      case 4:
        return update({ limit: 1 + (drawn % 4) });
      case 5:
        return update({ priority: PRIORITIES[drawn % PRIORITIES.length] as number });
      case 6:
        return update({ toleratedFailures: String(drawn % 3) });
      default:
        return this.#hold(scene, generation, drawn);
    }
  }

  /** A call after which the request may continue at once: with more tokens, or sooner. */
  #continuing(
    name: string,
    scene: Scene,
    generation: number,
    send: () => Promise<ControlReply>,
  ): Call {
    const change = call(name, send, (reply) => {
      if (reply.verdict !== 'ok') return;
      this.push(scene, { generation, ...reply });
      this.scheduleTend(scene, generation, 0);
    });
    return this.announce(scene, generation, change);
  }

  #hold(scene: Scene, generation: number, drawn: number): Call {
    const control = new ControlCommands(scene.connection, scene.id);
    return call(
      'hold',
      () => control.hold(generation, 1_000 + (drawn % 7) * 1_000),
      (held) => {
        if (held.verdict === 'held' && drawn % 2 === 1)
          this.scheduleTend(scene, generation, held.until);
      },
    );
  }
}
