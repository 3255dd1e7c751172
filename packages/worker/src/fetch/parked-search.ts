import type { Seeking } from '@piecework/protocol';

/**
 * The position of a worker in the parked requests of its tasks. A tick answers a page of them; the next tick
 * continues behind that page, and starts anew at the end. So requests that cannot be entered now do not hide the
 * others for long.
 */
export class ParkedSearch {
  #tasks: readonly string[];
  #after = '';

  /** `tasks`: those of the handlers. */
  constructor(tasks: '*' | readonly string[]) {
    this.#tasks = tasks === '*' ? ['*'] : tasks;
  }

  /** What the next tick is to search for. */
  next(): Seeking {
    const [first = ''] = this.#tasks;
    return { tasks: first === '*' ? '*' : ` ${this.#tasks.join(' ')} `, after: this.#after };
  }

  /** The last tick answered requests up to this entry of the index; '': to the end. */
  continueAfter(after: string): void {
    // cure: the search for parked requests continues where its last page ended
    this.#after = after;
    const at = this.#tasks.indexOf(after.slice(0, after.indexOf('\0')));
    if (at > 0) this.#tasks = [...this.#tasks.slice(at), ...this.#tasks.slice(0, at)];
  }
}
