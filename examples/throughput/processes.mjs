// Child processes that say how much they did. Each gets its options as a message (a URL may hold a
// password, which a command line would show) and answers with its count, again and again.
import { fork } from 'node:child_process';
import { once } from 'node:events';

export class Processes {
  #children = [];
  #counts = new Map();
  /** Resolves when all have ended well; rejects when one of them does not. */
  ended;

  /** One process for each of `options`. */
  constructor(program, options) {
    this.ended = Promise.all(options.map((one) => this.#start(program, one)));
    // Whoever awaits it is told; the process does not end of it before.
    this.ended.catch(() => {});
  }

  /** What all of them did together. */
  get total() {
    return [...this.#counts.values()].reduce((sum, count) => sum + count, 0);
  }

  /** Asks all to finish what they have begun, and waits for their end. */
  async stop() {
    for (const child of this.#children) if (child.connected) child.send('stop', () => {});
    await Promise.allSettled(
      this.#children.map((child) => child.exitCode ?? child.signalCode ?? once(child, 'exit')),
    );
  }

  async #start(program, options) {
    // A process group of its own: Ctrl-C reaches the parent, which decides.
    const child = fork(program, { detached: true });
    this.#children.push(child);
    child.on('message', (count) => this.#counts.set(child, count));
    child.send(options, () => {});
    const [code, signal] = await once(child, 'close');
    if (code !== 0) throw new Error(`process ${child.pid} ended with ${signal ?? `code ${code}`}`);
  }
}
