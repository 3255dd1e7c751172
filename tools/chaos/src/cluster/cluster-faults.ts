import { setTimeout as sleep } from 'node:timers/promises';
import type { Dice } from '../contract/dice.js';
import {
  type ClusterStroke,
  type Faults,
  isOfClusters,
  type Striker,
  type Stroke,
} from '../faults/faults.js';
import type { AttackedCluster } from './attacked-cluster.js';
import type { ClusterNode } from './moves.js';

/** Between two steps of a slot on its way, at the longest, in ms. */
const STEP_MS = 60;

/**
 * Does to a cluster what operators and accidents do, one after the other: a slot whose master is
 * replaced in the middle of its way has to be mended by hand (`redis-cli --cluster fix`), which no
 * client can do.
 */
export class ClusterFaults implements Striker {
  readonly #cluster: AttackedCluster;
  readonly #faults: Faults;
  readonly #dice: Dice;
  readonly #queue: string;
  readonly #open: () => readonly string[];
  readonly #afterKill: () => Promise<unknown>;
  #last: Promise<unknown> = Promise.resolve();

  constructor(parts: {
    cluster: AttackedCluster;
    /** For what strikes processes. */
    faults: Faults;
    dice: Dice;
    queue: string;
    /** Ids of requests that live. */
    open: () => readonly string[];
    /** What an operator does after a shard may have rolled back. */
    afterKill: () => Promise<unknown>;
  }) {
    this.#cluster = parts.cluster;
    this.#faults = parts.faults;
    this.#dice = parts.dice;
    this.#queue = parts.queue;
    this.#open = parts.open;
    this.#afterKill = parts.afterKill;
  }

  get done() {
    return this.#faults.done;
  }

  async strike(stroke: Stroke): Promise<void> {
    if (!isOfClusters(stroke)) return this.#faults.strike(stroke);
    const before = this.#last;
    const done = before.catch(() => {}).then(() => this.#strike(stroke));
    this.#last = done;
    await done;
  }

  async #strike(stroke: ClusterStroke): Promise<void> {
    const { operator } = this.#cluster;
    switch (stroke) {
      case 'fail over': {
        const master = await this.#master();
        return this.#faults.during(stroke, this.#nameOf(master), async () => {
          await operator.failover(master);
          await this.#whole();
        });
      }
      case 'kill master':
        return this.#kill(await this.#master());
      case 'move queue slot':
        return this.#move(stroke, this.#queue);
      case 'move request slot': {
        const ids = this.#open();
        // As if it had been any: there is hardly ever none.
        return this.#move(stroke, ids[this.#dice.whole(0, ids.length - 1)] ?? 'none');
      }
    }
  }

  async #kill(master: ClusterNode): Promise<void> {
    const { operator } = this.#cluster;
    const [[slot = 0] = []] = master.slots;
    await this.#faults.during('kill master', this.#nameOf(master), async () => {
      await this.#cluster.kill(master.port);
      await operator.agreed(
        async () => (await operator.masterOf(slot)).id !== master.id,
        'a replica of the killed master takes over',
      );
    });
    await this.#faults.during('restart redis', this.#nameOf(master), async () => {
      await this.#cluster.startAgain(master.port);
      await this.#whole();
      await this.#afterKill();
    });
  }

  async #move(stroke: ClusterStroke, tag: string): Promise<void> {
    const { operator } = this.#cluster;
    const slot = await operator.slotOf(tag);
    const options = { atOnce: 2, stepMs: this.#dice.whole(1, STEP_MS) };
    await this.#faults.during(stroke, tag, async () => void (await operator.move(slot, options)));
  }

  /** Any master: half of the times that of the queue. */
  async #master(): Promise<ClusterNode> {
    const { operator } = this.#cluster;
    await this.#whole();
    if (this.#dice.chance(0.5)) return operator.masterOf(await operator.slotOf(this.#queue));
    const masters = (await operator.nodes()).filter(
      ({ role, up, slots }) => role === 'master' && up && slots.length > 0,
    );
    return masters[this.#dice.whole(0, masters.length - 1)] as ClusterNode;
  }

  /** Until each master has a replica that follows. */
  async #whole(): Promise<void> {
    const { operator } = this.#cluster;
    await operator.agreed(async () => {
      const nodes = await operator.nodes();
      const replicas = nodes.filter(({ role, up }) => role === 'replica' && up);
      if (replicas.length !== 3 || nodes.some(({ up }) => !up)) return false;
      const followed = new Set(replicas.map(({ masterId }) => masterId));
      if (followed.size !== 3) return false;
      const infos = await Promise.all(replicas.map((it) => operator.at(it).info('replication')));
      return infos.every((info) => info.includes('master_link_status:up'));
    }, 'every master has a replica that follows');
    await sleep(50);
  }

  #nameOf({ port }: ClusterNode): string {
    return `node-${port}`;
  }
}
