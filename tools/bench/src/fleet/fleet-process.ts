import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { FleetOrder, FleetReport, FromFleet, ToFleet } from './fleet-order.js';

const PROGRAM = fileURLToPath(new URL('./fleet-program.js', import.meta.url));

/** A process of a fleet, as the measuring process sees it. */
export class FleetProcess {
  readonly #child: ChildProcess;
  readonly #exit: Promise<unknown>;
  /** Resolves when its first handler starts. */
  readonly first: Promise<unknown>;
  /** Rejects when it ends before `close`. */
  readonly failure: Promise<never>;

  private constructor(order: FleetOrder) {
    this.#child = fork(PROGRAM, [JSON.stringify(order)]);
    this.#child.setMaxListeners(0);
    this.#exit = once(this.#child, 'exit');
    this.failure = this.#exit.then(() => {
      throw new Error('a process of the fleet ended early; see above');
    });
    this.failure.catch(() => {});
    this.first = this.#next('first');
  }

  /** Resolves when it is warm. */
  static async start(order: FleetOrder): Promise<FleetProcess> {
    const fleet = new FleetProcess(order);
    await Promise.race([fleet.#next('ready'), fleet.failure]);
    return fleet;
  }

  startWorkers(): void {
    this.#send('start');
  }

  async report(): Promise<FleetReport> {
    const next = this.#next('report');
    this.#send('report');
    return (await Promise.race([next, this.failure])).report;
  }

  async close(): Promise<void> {
    if (this.#child.connected) this.#send('close');
    await this.#exit;
  }

  #send(word: ToFleet): void {
    this.#child.send(word);
  }

  #next<Kind extends FromFleet['kind']>(kind: Kind): Promise<Extract<FromFleet, { kind: Kind }>> {
    return new Promise((resolve) => {
      const onMessage = (message: unknown) => {
        if ((message as FromFleet).kind !== kind) return;
        this.#child.off('message', onMessage);
        resolve(message as Extract<FromFleet, { kind: Kind }>);
      };
      this.#child.on('message', onMessage);
    });
  }
}
