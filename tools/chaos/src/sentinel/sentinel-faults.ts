import type { Faults, Striker, Stroke } from '../faults/faults.js';
import type { AttackedSentinels } from './attacked-sentinels.js';

/** Has Sentinel replace the master, one failover after the other: planned ones lose nothing, those by a kill may. */
export class SentinelFaults implements Striker {
  readonly #server: AttackedSentinels;
  readonly #faults: Faults;
  #last: Promise<unknown> = Promise.resolve();

  /** @param faults for what strikes processes */
  constructor(server: AttackedSentinels, faults: Faults) {
    this.#server = server;
    this.#faults = faults;
  }

  get done() {
    return this.#faults.done;
  }

  async strike(stroke: Stroke): Promise<void> {
    if (stroke !== 'fail over' && stroke !== 'kill master') return this.#faults.strike(stroke);
    const done = this.#last.catch(() => {}).then(() => this.#replace(stroke));
    this.#last = done;
    await done;
  }

  async #replace(stroke: 'fail over' | 'kill master'): Promise<void> {
    const { watched } = this.#server;
    const former = await watched.masterPort();
    const target = `node-${former}`;
    await this.#faults.during(stroke, target, async () => {
      if (stroke === 'fail over') await watched.handOver();
      else await watched.killMaster((lost) => this.#faults.lost(lost));
    });
    if (stroke === 'kill master')
      await this.#faults.during('restart redis', target, () => watched.startAgain(former));
  }
}
