import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const PROGRAM = fileURLToPath(new URL('./proxy-program.js', import.meta.url));

export interface ProxyOrder {
  readonly host: string;
  readonly port: number;
  /** For each direction. */
  readonly delayMs: number;
}

/** Puts a network between the workers and Redis. */
export class DelayingProxy implements AsyncDisposable {
  readonly host = '127.0.0.1';
  readonly #child: ChildProcess;

  private constructor(
    child: ChildProcess,
    readonly port: number,
  ) {
    this.#child = child;
  }

  static async start(order: ProxyOrder): Promise<DelayingProxy> {
    const child = fork(PROGRAM, [JSON.stringify(order)]);
    const [port] = await Promise.race([once(child, 'message'), once(child, 'exit')]);
    if (typeof port !== 'number' || !child.connected) throw new Error('the proxy did not start');
    return new DelayingProxy(child, port);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const exit = once(this.#child, 'exit');
    this.#child.kill();
    await exit;
  }
}
