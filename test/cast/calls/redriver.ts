import { RedriveCommands } from '@piecework/protocol';
import { freshName, type Scene } from '../../support/given.js';
import { Actor, type Call, call, type Surroundings } from './actor.js';

const LEASE_MS = 12_000;
/** Failures that one call moves. */
const CHUNK = 1;

/** The generation that it opened, and what it has to move yet. */
interface Redrive {
  readonly scene: Scene;
  readonly generation: number;
  readonly sealedBy: string;
  readonly sent: number;
  readonly left: readonly number[];
}

/** Redrives complete requests: intent, open the next generation, move failures with their push, seal. */
export class Redriver extends Actor {
  #redrive: Redrive | undefined;
  readonly #owner = freshName('redriver');

  constructor(around: Surroundings) {
    super(around);
  }

  protected choose(what: number): Call | undefined {
    if (this.#redrive)
      return this.#redrive.left.length > 0 ? this.#move(this.#redrive) : this.#seal(this.#redrive);
    const { scenes, pictures } = this.around;
    const scene = scenes[what % scenes.length] as Scene;
    const picture = pictures.get(scene.id);
    const failing = Object.keys(picture?.failed ?? {}).filter((field) => /^\d+$/.test(field));
    if (picture?.status !== 'complete' || failing.length === 0) return undefined;
    // All of them, or all but one.
    const indexes = failing.map(Number).sort((a, b) => a - b);
    const left = what % 3 === 0 ? indexes.slice(1) : indexes;
    return call(
      'intent',
      () => scene.queue.intent(scene.id),
      (generation) => {
        if (generation === picture.generation) {
          // The request is complete, and its queue still has it open.
          this.finish(scene, generation, picture.outcome as 'failed');
        } else this.todo.push(() => this.#open(scene, generation, left));
      },
    );
  }

  #open(scene: Scene, generation: number, left: readonly number[]): Call {
    const commands = new RedriveCommands(scene.connection, scene.id);
    return call(
      'redrive',
      () => commands.open(generation, this.#owner, LEASE_MS),
      (opened) => {
        if (opened.verdict === 'opened') this.#redrive = { scene, generation, left, ...opened };
        // 'gone': dropped meanwhile, and perhaps submitted anew under this intent.
        else if (
          opened.verdict === 'void' ||
          (opened.verdict === 'exists' && opened.generation !== generation)
        )
          this.finish(scene, generation, 'gone');
      },
    );
  }

  #move(redrive: Redrive): Call {
    const { scene, generation, left } = redrive;
    const commands = new RedriveCommands(scene.connection, scene.id);
    const chunk = left.slice(0, CHUNK);
    return call(
      'run-again',
      () => commands.runAgain(generation, this.#owner, chunk),
      (again) => {
        if (again.verdict !== 'ok') {
          this.#redrive = undefined;
          return;
        }
        this.push(scene, { generation, ...again });
        this.#redrive = { ...redrive, left: left.slice(again.done) };
      },
    );
  }

  #seal({ scene, generation, sealedBy, sent }: Redrive): Call {
    this.#redrive = undefined;
    return call(
      'seal',
      () => scene.request.seal(generation, sealedBy, sent),
      (sealed) => {
        if (sealed.verdict === 'complete') this.finish(scene, generation, sealed.outcome);
      },
    );
  }

  override die(): void {
    super.die();
    this.#redrive = undefined;
  }
}
