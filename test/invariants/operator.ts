import { ControlCommands, type GoesOn } from '@piecework/protocol';
import type { Scene } from '../support/given.js';
import { Actor, type Call, call } from './actor.js';
import type { World } from './world.js';

/** To which a priority is changed. */
export const PRIORITIES = [10, 50, 90];

/** Pauses, resumes, holds back and changes requests while they run; note is last, push before it. */
export class Operator extends Actor {
  constructor(world: World) {
    super(world);
  }

  protected choose(what: number): Call | undefined {
    const { scenes, pictures } = this.world;
    const scene = scenes[what % scenes.length] as Scene;
    const { connection, id } = scene;
    const generation = pictures.get(id)?.generation ?? 0;
    const control = new ControlCommands(connection, id);
    const goesOn = (send: () => Promise<GoesOn>) =>
      call(send, (reply) => {
        if (reply.verdict !== 'ok') return;
        this.push(scene, { generation, ...reply });
        this.todo.push(() => call(() => scene.queue.note(id, generation, 0)));
      });
    const drawn = Math.floor(what / 8);
    switch (what % 8) {
      case 0:
      case 1:
        return call(() => control.pause(generation));
      case 2:
      case 3:
        return goesOn(() => control.resume(generation));
      case 4:
        return goesOn(() => control.update(generation, { limit: 1 + (drawn % 4) }));
      case 5:
        return goesOn(() =>
          control.update(generation, { priority: PRIORITIES[drawn % PRIORITIES.length] as number }),
        );
      case 6:
        return goesOn(() => control.update(generation, { toleratedFailures: String(drawn % 3) }));
      default:
        return call(
          () => control.hold(generation, 1_000 + (drawn % 7) * 1_000),
          (held) => {
            if (held.verdict !== 'held' || drawn % 2 === 0) return;
            this.todo.push(() => call(() => scene.queue.note(id, generation, held.until)));
          },
        );
    }
  }
}
