import { RedriveCommands } from '@piecework/protocol';
import { freshName, type Scene } from '../support/given.js';
import { Actor, type Call, call } from './actor.js';
import type { World } from './world.js';

const LEASE_MS = 12_000;
/** Failures that one call moves. */
const CHUNK = 1;

/** The life that it opened, and what is still to be moved. */
interface Life {
  readonly scene: Scene;
  readonly generation: number;
  readonly sealedBy: string;
  readonly sent: number;
  readonly left: readonly number[];
}

/** Redrives complete requests: intent, open the next life, move failures, push, seal. */
export class Redriver extends Actor {
  #life: Life | undefined;
  readonly #owner = freshName('redriver');

  constructor(world: World) {
    super(world);
  }

  protected choose(what: number): Call | undefined {
    if (this.#life)
      return this.#life.left.length > 0 ? this.#move(this.#life) : this.#seal(this.#life);
    const { scenes, pictures } = this.world;
    const scene = scenes[what % scenes.length] as Scene;
    const picture = pictures.get(scene.id);
    const failing = Object.keys(picture?.failed ?? {}).filter((field) => /^\d+$/.test(field));
    if (picture?.status !== 'complete' || failing.length === 0) return undefined;
    // All of them, or all but one.
    const indexes = failing.map(Number).sort((a, b) => a - b);
    const left = what % 3 === 0 ? indexes.slice(1) : indexes;
    return call(
      () => scene.queue.intent(scene.id),
      (generation) => {
        if (generation === picture.generation) {
          // It is complete, and the queue was not told yet.
          this.finish(scene, generation, picture.outcome as 'failed');
        } else this.todo.push(() => this.#open(scene, generation, left));
      },
    );
  }

  #open(scene: Scene, generation: number, left: readonly number[]): Call {
    const commands = new RedriveCommands(scene.connection, scene.id);
    return call(
      () => commands.open(generation, this.#owner, LEASE_MS),
      (opened) => {
        if (opened.verdict === 'opened') this.#life = { scene, generation, left, ...opened };
        // 'gone': dropped meanwhile, and perhaps submitted anew under this intent.
        else if (
          opened.verdict === 'void' ||
          (opened.verdict === 'exists' && opened.generation !== generation)
        )
          this.finish(scene, generation, 'gone');
      },
    );
  }

  #move(life: Life): Call {
    const { scene, generation, left } = life;
    const commands = new RedriveCommands(scene.connection, scene.id);
    const chunk = left.slice(0, CHUNK);
    return call(
      () => commands.runAgain(generation, this.#owner, chunk),
      (again) => {
        if (again.verdict !== 'ok') {
          this.#life = undefined;
          return;
        }
        this.push(scene, { generation, ...again });
        this.#life = { ...life, left: left.slice(again.done) };
      },
    );
  }

  #seal({ scene, generation, sealedBy, sent }: Life): Call {
    this.#life = undefined;
    return call(
      () => scene.request.seal(generation, sealedBy, sent),
      (sealed) => {
        if (sealed.verdict === 'complete') this.finish(scene, generation, sealed.outcome);
      },
    );
  }

  override die(): void {
    super.die();
    this.#life = undefined;
  }
}
