import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';

/*
 * What an operator does to a cluster: moves hash slots from one master to another, step by step (the
 * classic migration of Redis 7), and has replicas take over.
 */

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** A node as the cluster sees it. */
export interface ClusterNode extends Address {
  readonly id: string;
  readonly role: 'master' | 'replica';
  /** Of a replica, the id of its master. */
  readonly masterId: string;
  readonly up: boolean;
  /** First and last of each range of hash slots. */
  readonly slots: readonly (readonly [number, number])[];
}

/** How long one step may take until the cluster agrees, in ms. */
const AGREED_MS = 30_000;
/** Hash slots on their way together: what is in them stands still meanwhile. */
const MOVED_AT_ONCE = 256;
const MIGRATE_MS = 5_000;
const VIEW_MS = 2_000;

export class ClusterOperator {
  readonly #clients = new Map<number, Redis>();

  readonly #portOf: (announced: number) => number;

  /** `portOf`: the port of a node that announces another one. Default: it announces its own. */
  constructor(nodes: readonly Address[], portOf = (announced: number) => announced) {
    this.#portOf = portOf;
    for (const node of nodes) this.#open(node);
  }

  #open({ host, port }: Address): void {
    const client = new Redis({
      ...{ host, port, maxRetriesPerRequest: 0, enableOfflineQueue: true },
      retryStrategy: () => 100,
    });
    client.on('error', () => {});
    this.#clients.set(port, client);
  }

  close(): void {
    for (const client of this.#clients.values()) client.disconnect();
  }

  /** Straight to one node. */
  at({ port }: Pick<Address, 'port'>): Redis {
    const client = this.#clients.get(port);
    if (!client) throw new RangeError(`no node at port ${port}`);
    return client;
  }

  /** All nodes, as the first that answers sees them. */
  async nodes(): Promise<ClusterNode[]> {
    let why: unknown;
    for (const client of this.#clients.values()) {
      if (client.status !== 'ready') continue;
      try {
        return await this.#viewOf(client);
      } catch (error) {
        why = error;
      }
    }
    throw why ?? new Error('no node of the cluster answers');
  }

  async #viewOf(client: Redis): Promise<ClusterNode[]> {
    return (await viewOf(client)).map((node) => ({ ...node, port: this.#portOf(node.port) }));
  }

  /** The hash slot of what has this hash tag: the name of a queue, the id of a request. */
  async slotOf(tag: string): Promise<number> {
    const [client] = this.#clients.values();
    return Number(await client?.cluster('KEYSLOT', `{${tag}}`));
  }

  async masterOf(slot: number): Promise<ClusterNode> {
    const holds = ({ role, up, slots }: ClusterNode) =>
      role === 'master' && up && slots.some(([from, to]) => from <= slot && slot <= to);
    const master = (await this.nodes()).find(holds);
    if (!master) throw new Error(`no master holds hash slot ${slot}`);
    return master;
  }

  /** A replica of the master takes over in good order; resolves when all live nodes say so. */
  async failover(master: ClusterNode): Promise<ClusterNode> {
    const replica = await this.#replicaOf(master);
    const [[slot = 0] = []] = master.slots;
    await this.agreed(async () => {
      // Refused while the replica has no link to its master, or another vote is under way.
      await this.at(replica)
        .call('CLUSTER', 'FAILOVER')
        .catch(() => {});
      for (let i = 0; i < 40; i += 1) {
        if (await this.isMaster(replica.id, slot)) return true;
        await sleep(25);
      }
      return false;
    }, `the replica at port ${replica.port} takes over`);
    return replica;
  }

  /** After a failover the old master is not heard of as a replica at once. */
  async #replicaOf({ id, port }: ClusterNode): Promise<ClusterNode> {
    let replica: ClusterNode | undefined;
    await this.agreed(async () => {
      replica = (await this.nodes()).find(
        (it) => it.role === 'replica' && it.up && it.masterId === id,
      );
      return replica !== undefined;
    }, `the master at port ${port} has a replica`);
    return replica as unknown as ClusterNode;
  }

  /** Whether every live node sees that master with that slot. */
  async isMaster(id: string, slot: number): Promise<boolean> {
    const views = await Promise.all(
      [...this.#clients.values()]
        .filter(({ status }) => status === 'ready')
        .map((client) => this.#viewOf(client)),
    );
    return views.every((nodes) =>
      nodes.some(
        (it) =>
          it.id === id &&
          it.role === 'master' &&
          it.slots.some(([from, to]) => from <= slot && slot <= to),
      ),
    );
  }

  /** Begins to move a slot to that master, or to any other. */
  async beginMove(slot: number, to?: ClusterNode): Promise<SlotMove> {
    const from = await this.masterOf(slot);
    const others = (await this.nodes()).filter(
      ({ id, role, up, slots }) => role === 'master' && up && slots.length > 0 && id !== from.id,
    );
    const target = to ?? others[slot % others.length];
    if (!target || target.id === from.id) throw new Error(`nobody to move hash slot ${slot} to`);
    await this.at(target).cluster('SETSLOT', slot, 'IMPORTING', from.id);
    await this.at(from).cluster('SETSLOT', slot, 'MIGRATING', target.id);
    return new SlotMove(this, slot, from, target);
  }

  /** Moves a whole slot, `stepMs` between two steps of at most `atOnce` keys. */
  async move(slot: number, { atOnce = 10, stepMs = 0, to }: MoveOptions = {}): Promise<SlotMove> {
    const move = await this.beginMove(slot, to);
    while ((await move.step(atOnce)) > 0) await sleep(stepMs);
    await move.finish();
    return move;
  }

  /** An empty node becomes a master without hash slots; resolves when all nodes know it. */
  async join(address: Address): Promise<ClusterNode> {
    const [client] = this.#clients.values();
    this.#open(address);
    await client?.cluster('MEET', address.host, address.port);
    const id = String(await this.at(address).cluster('MYID'));
    let joined: ClusterNode | undefined;
    await this.agreed(async () => {
      const views = await Promise.all(
        [...this.#clients.values()].map((each) => this.#viewOf(each)),
      );
      joined = views[0]?.find((it) => it.id === id);
      const all = views.every((nodes) => nodes.length === views.length);
      // One that has just come refuses everything for two seconds.
      const served = String(await this.at(address).cluster('INFO')).includes('cluster_state:ok');
      return served && all && views.every((nodes) => nodes.every(({ up }) => up));
    }, `all nodes know the one at port ${address.port}`);
    return joined as unknown as ClusterNode;
  }

  /** A master without hash slots leaves, as by `redis-cli --cluster del-node`. Its server continues by itself. */
  async leave({ id, port }: ClusterNode): Promise<void> {
    for (const [at, client] of this.#clients) if (at !== port) await client.cluster('FORGET', id);
    await this.at({ port }).call('CLUSTER', 'RESET', 'SOFT');
  }

  /** Forgets a node whose server is about to end. */
  drop({ port }: Pick<Address, 'port'>): void {
    this.#clients.get(port)?.disconnect();
    this.#clients.delete(port);
  }

  /** Moves the hash slots from `first` to `last`, which one master holds, some hundreds at a time. */
  async moveRange([first, last]: readonly [number, number], to: ClusterNode): Promise<void> {
    const from = await this.masterOf(first);
    for (let at = first; at <= last; at += MOVED_AT_ONCE) {
      const count = Math.min(MOVED_AT_ONCE, last - at + 1);
      const slots = Array.from({ length: count }, (_, i) => at + i);
      await this.#moveSome(slots, from, to);
    }
    const ends = async () => (await this.isMaster(to.id, first)) && this.isMaster(to.id, last);
    await this.agreed(ends, `hash slots ${first} to ${last} are at port ${to.port}`);
  }

  async #moveSome(slots: readonly number[], from: ClusterNode, to: ClusterNode): Promise<void> {
    const [source, target] = [this.at(from), this.at(to)];
    const each = async (client: Redis, what: string, ...how: string[]) => {
      const calls = slots.map((slot) => ['cluster', what, slot, ...how]);
      const replies = (await client.pipeline(calls).exec()) ?? [];
      for (const [error] of replies) if (error) throw error;
      return replies.map(([, reply]) => reply);
    };
    await each(target, 'setslot', 'importing', from.id);
    await each(source, 'setslot', 'migrating', to.id);
    // From now on nothing new comes into these slots where they were.
    const counts = await each(source, 'countkeysinslot');
    for (const slot of slots.filter((_, i) => Number(counts[i]) > 0)) {
      const move = new SlotMove(this, slot, from, to);
      while ((await move.step(100)) > 0);
    }
    await each(target, 'setslot', 'node', to.id);
    await each(source, 'setslot', 'node', to.id);
  }

  async agreed(condition: () => Promise<boolean>, what: string): Promise<void> {
    const endMs = performance.now() + AGREED_MS;
    while (!(await condition().catch(() => false))) {
      if (performance.now() > endMs) throw new Error(`waited in vain until ${what}`);
      await sleep(25);
    }
  }
}

export interface MoveOptions {
  readonly atOnce?: number;
  readonly stepMs?: number;
  readonly to?: ClusterNode;
}

/** A hash slot on its way. */
export class SlotMove {
  readonly #operator: ClusterOperator;
  readonly slot: number;
  readonly from: ClusterNode;
  readonly to: ClusterNode;

  constructor(operator: ClusterOperator, slot: number, from: ClusterNode, to: ClusterNode) {
    this.#operator = operator;
    this.slot = slot;
    this.from = from;
    this.to = to;
  }

  /** Moves up to `count` keys; answers how many it found to move. */
  async step(count: number): Promise<number> {
    const from = this.#operator.at(this.from);
    const keys = (await from.cluster('GETKEYSINSLOT', this.slot, count)) as string[];
    if (keys.length === 0) return 0;
    const { host, port } = this.to;
    await from.call('MIGRATE', host, port, '', 0, MIGRATE_MS, 'KEYS', ...keys);
    return keys.length;
  }

  /** The new master first: it would otherwise be asked by nobody, while the old one refuses. */
  async finish(): Promise<void> {
    const operator = this.#operator;
    await operator.at(this.to).cluster('SETSLOT', this.slot, 'NODE', this.to.id);
    await operator.at(this.from).cluster('SETSLOT', this.slot, 'NODE', this.to.id);
    await operator.agreed(
      () => operator.isMaster(this.to.id, this.slot),
      `hash slot ${this.slot} is at port ${this.to.port}`,
    );
  }
}

/** @throws Error from one that hangs */
async function viewOf(client: Redis): Promise<ClusterNode[]> {
  const late = sleep(VIEW_MS).then(() => {
    throw new Error('a node does not say what it sees of the cluster');
  });
  return parseNodes(String(await Promise.race([client.call('CLUSTER', 'NODES'), late])));
}

function parseNodes(text: string): ClusterNode[] {
  return text
    .trim()
    .split('\n')
    .flatMap((line) => {
      const [id = '', at = '', flags = '', masterId = '', , , , link = '', ...ranges] =
        line.split(' ');
      const [, host = '', port = ''] = /^(.*):(\d+)@/.exec(at) ?? [];
      // What is on its way stands behind, in brackets.
      const slots = ranges
        .filter((range) => !range.startsWith('['))
        .map((range) => range.split('-').map(Number))
        .map(([from = 0, to = from]) => [from, to] as const);
      const words = flags.split(',');
      if (words.includes('handshake') || words.includes('noaddr')) return [];
      const up =
        !words.some((word) => word.startsWith('fail')) &&
        (link === 'connected' || words.includes('myself'));
      const role = words.includes('master') ? 'master' : 'replica';
      return [{ id, host, port: Number(port), role, masterId, up, slots } as const];
    });
}
