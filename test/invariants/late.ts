import type { Call } from '../cast/calls/actor.js';

/** Calls that arrive at a later step than their sender made them, or again. */
export class Late {
  #calls: { readonly call: Call; readonly at: number }[] = [];

  add(call: Call, at: number): void {
    this.#calls.push({ call, at });
  }

  /** The calls that arrive by this step; each once. */
  due(step: number): Call[] {
    const due = this.#calls.filter(({ at }) => at <= step);
    this.#calls = this.#calls.filter(({ at }) => at > step);
    return due.map(({ call }) => call);
  }
}
