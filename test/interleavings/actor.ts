import { AsyncLocalStorage } from 'node:async_hooks';

const current = new AsyncLocalStorage<Actor>();

/** Whose code runs now; undefined: nobody's of the history. */
export const currentActor = (): Actor | undefined => current.getStore();

/**
 * One process of a history: a producer, a worker, a notifier. It is a process only in what can become
 * of it: it dies (nothing of it is carried out, answered or woken any more), or it stands still (its
 * timers and replies wait until it goes on, as those of a process that was stopped).
 */
export class Actor {
  readonly name: string;
  /** What is random in it, and how it is called instead, so that two plays are the same. */
  alias: readonly [string, string] | undefined;
  dead = false;
  /** Until when it stands still, in virtual time; 0: it does not. */
  frozenUntil = 0;
  readonly #late = new Set<() => void>();

  constructor(name: string) {
    this.name = name;
  }

  get frozen(): boolean {
    return this.frozenUntil > 0;
  }

  /** Runs code of this process, now and whatever it leaves behind. */
  run<T>(work: () => T): T {
    return current.run(this, work);
  }

  /** Does `work`, unless the process is dead; later, when it stands still. */
  wake(work: () => void): void {
    if (this.dead) return;
    if (this.frozen) this.#late.add(work);
    else this.run(work);
  }

  /** It goes on: all that was to happen meanwhile happens at once. */
  thaw(): void {
    this.frozenUntil = 0;
    const late = [...this.#late];
    this.#late.clear();
    for (const work of late) this.wake(work);
  }
}
