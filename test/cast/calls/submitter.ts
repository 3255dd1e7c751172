import { freshName, items, type Options, optionsOf, type Scene } from '../../support/given.js';
import { Actor, type Call, call, type Surroundings } from './actor.js';

const LEASE_MS = 12_000;
/** Items of one append. */
const CHUNK = 3;

/** What a submitter submits. */
export interface Submission {
  readonly options: Options;
  readonly items: number;
}

/** Submits one generation of an id: intent, create, append with its push, seal. */
export class Submitter extends Actor {
  done = false;
  #generation = 0;
  #sent = 0;
  readonly #scene: Scene;
  readonly #submission: Submission;
  readonly #owner = freshName('owner');

  constructor(around: Surroundings, scene: Scene, submission: Submission) {
    super(around);
    this.#scene = scene;
    this.#submission = submission;
  }

  protected choose(): Call | undefined {
    if (this.done) return undefined;
    if (this.#generation === 0) return this.#intent();
    return this.#sent < this.#submission.items ? this.#append() : this.#seal();
  }

  #intent(): Call {
    const { queue, id } = this.#scene;
    return call(
      'intent',
      () => queue.intent(id),
      (generation) => {
        this.#generation = generation;
        this.todo.push(() => this.#create(generation));
      },
    );
  }

  #create(generation: number): Call {
    const { request, queue } = this.#scene;
    const options = optionsOf(this.#submission.options, queue.keys.queue);
    return call(
      'create',
      () => request.create({ generation, owner: this.#owner, leaseMs: LEASE_MS, options }),
      (created) => {
        if (created.verdict === 'created') return;
        if (created.verdict === 'exists') {
          this.done = true;
          if (created.generation !== generation) this.finish(this.#scene, generation, 'gone');
          return;
        }
        this.finish(this.#scene, generation, 'gone');
        this.#generation = 0;
      },
    );
  }

  #append(): Call {
    const { request } = this.#scene;
    const generation = this.#generation;
    const first = this.#sent;
    const chunk = items(Math.min(CHUNK, this.#submission.items - first), first);
    return call(
      'append',
      () => request.append(generation, this.#owner, first, chunk),
      (appended) => {
        if (appended.verdict === 'ok') {
          this.#sent = first + chunk.length;
          this.push(this.#scene, { generation, ...appended });
        } else this.done = true;
      },
    );
  }

  #seal(): Call {
    const { request } = this.#scene;
    const generation = this.#generation;
    const sent = this.#sent;
    return call(
      'seal',
      () => request.seal(generation, this.#owner, sent),
      (sealed) => {
        this.done = true;
        if (sealed.verdict === 'complete') this.finish(this.#scene, generation, sealed.outcome);
      },
    );
  }
}
