import type { Seeking } from '@piecework/protocol';

/**
 * Where a worker is in the requests that wait for one of its tasks. A tick answers a page of them; the next one
 * goes on behind it, and from the start when all were seen: so what cannot be entered now hides nothing for long.
 */
export class ParkedSearch {
  #tasks: readonly string[];
  #after = '';

  /** `tasks`: as the handlers name them. */
  constructor(tasks: '*' | readonly string[]) {
    this.#tasks = tasks === '*' ? ['*'] : tasks;
  }

  /** What the next tick is to look for. */
  next(): Seeking {
    const [first = ''] = this.#tasks;
    return { tasks: first === '*' ? '*' : ` ${this.#tasks.join(' ')} `, after: this.#after };
  }

  /** The last tick answered requests up to this entry of the index; '': all that there are. */
  goOn(after: string): void {
    this.#after = after;
    const at = this.#tasks.indexOf(after.slice(0, after.indexOf('\0')));
    if (at > 0) this.#tasks = [...this.#tasks.slice(at), ...this.#tasks.slice(0, at)];
  }
}
