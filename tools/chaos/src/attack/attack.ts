import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { BadNetwork } from '../attacked/bad-network.js';
import { Crew, type Place, type RoleName } from '../attacked/crew.js';
import { AttackedServer, type Fsync } from '../attacked/server.js';
import { AttackedCluster } from '../cluster/attacked-cluster.js';
import { ClusterFaults } from '../cluster/cluster-faults.js';
import { Dice } from '../contract/dice.js';
import { Journal } from '../contract/journal.js';
import { WAITERS } from '../contract/plan.js';
import { Faults, type Striker } from '../faults/faults.js';
import { Nemesis, type Rates, scheduleOf } from '../faults/nemesis.js';
import { AttackedSentinels } from '../sentinel/attacked-sentinels.js';
import { SentinelFaults } from '../sentinel/sentinel-faults.js';
import { Desk } from './desk.js';
import { Observer } from './observer.js';
import { Pace } from './pace.js';

/*
 * One attack: a Redis of its own; workers, producers and waiters as processes; proxies between them; and faults for a
 * while. After that the faults stop, and every request that was begun is finished, read and dropped.
 */

export interface AttackOptions {
  readonly minutes: number;
  readonly seed: number;
  readonly fsync: Fsync;
  /** Whether a cluster, or servers behind Sentinel, are attacked: by faults of their masters, without proxies. */
  readonly cluster: boolean;
  readonly sentinel: boolean;
  readonly rates: Rates;
  /** Whether the server's memory is filled once, in the middle. */
  readonly fillsMemory: boolean;
  /** Items a second; 'half': half of the rate that was measured in the first 20 s. */
  readonly itemsPerSecond: number | 'half';
  /** How many workers are never killed, so that a leak has time to show. */
  readonly sparedWorkers: number;
  /** Whether the clock of the server is stepped; this takes a C compiler. */
  readonly stepsClock: boolean;
  /** How many shards the queue has. */
  readonly shards: number;
  /** How many processes put into the other queues and take from them. */
  readonly takers: number;
  /** Whether the leases of producers are so short that outages may outlast them. */
  readonly shortLeases: boolean;
  /** A folder with the programs of another revision, for every second place of a role. */
  readonly elsewhere: string | undefined;
  /** Folder in which journals and logs are kept. Without it they are removed after the run. */
  readonly keep: string | undefined;
  readonly say: (line: string) => void;
}

export interface AttackOutcome {
  /** Folder of the journals, while `work` runs. */
  readonly journals: string;
  /** Problems that the journals do not show. Empty if there were none. */
  readonly troubles: readonly string[];
  /** Error replies of a cluster: name → number. */
  readonly errors: ReadonlyMap<string, number>;
}

const QUEUE = 'chaos';
const LEASE_MS = 2_000;
const CONCURRENCY = 20;
const WORKERS = 5;
const PRODUCERS = 2;
/** Requests are small in a cluster, so that work is always at hand and a stall shows. */
const ITEMS_IN_CLUSTER = 200;
const READY_MS = 30_000;
const DRAIN_MS = 180_000;
const STOP_MS = 20_000;
const SAY_MS = 10_000;
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Attacks, then lets `work` read the journals before they are removed. */
export async function attack<T>(
  options: AttackOptions,
  work: (outcome: AttackOutcome) => Promise<T>,
): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'piecework-chaos-'));
  const journals = join(options.keep ?? folder, 'journals');
  const logs = join(options.keep ?? folder, 'logs');
  for (const each of [journals, logs]) mkdirSync(each, { recursive: true });
  const remove = () => rmSync(folder, { recursive: true, force: true });
  const scene = await Scene.set(options, { folder, journals, logs }).catch((error: unknown) => {
    remove();
    throw error;
  });
  // However this process ends. Redis ends with this process by itself.
  const vanish = () => {
    scene.crew.killAll();
    remove();
  };
  const flee = () => process.exit(130);
  process.once('exit', vanish);
  for (const signal of SIGNALS) process.once(signal, flee);
  try {
    await scene.play();
    await scene.clear();
    return await work({ journals, troubles: scene.troubles, errors: scene.errors });
  } finally {
    await scene.clear();
    vanish();
    process.off('exit', vanish);
    for (const signal of SIGNALS) process.off(signal, flee);
  }
}

interface Attacked {
  readonly server: AttackedServer | AttackedCluster | AttackedSentinels;
  /** None for a cluster or behind Sentinel: these announce the addresses of the servers. */
  readonly proxies: readonly BadNetwork[];
}

class Scene {
  readonly troubles: string[] = [];
  errors: ReadonlyMap<string, number> = new Map();
  readonly crew: Crew;
  readonly #options: AttackOptions;
  readonly #server: AttackedServer | AttackedCluster | AttackedSentinels;
  readonly #proxies: readonly BadNetwork[];
  readonly #observer: Observer;
  readonly #faults: Striker;
  readonly #desk: Desk;
  readonly #journal: Journal;
  readonly #folders: { journals: string; logs: string };
  #cleared = false;

  private constructor(
    options: AttackOptions,
    folders: { journals: string; logs: string },
    { server, proxies }: Attacked,
  ) {
    const { journals, logs } = folders;
    const { seed } = options;
    this.#options = options;
    this.#folders = folders;
    this.#server = server;
    this.#proxies = proxies;
    this.#journal = new Journal(journals, 'nemesis');
    const { shards, elsewhere } = options;
    this.crew = new Crew(
      logs,
      {
        onReport: (member, report) => this.#desk.hear(member, report),
        onUnexpectedEnd: ({ name }, how) => this.#trouble(`${name} ended by itself: ${how}`),
      },
      elsewhere,
    );
    const observer = new Observer(server, this.crew, new Journal(journals, 'observer'), {
      ...{ queue: QUEUE, shards, takers: options.takers > 0 },
    });
    this.#observer = observer;
    const dice = new Dice(seed, -1);
    const faults = new Faults({
      ...{ crew: this.crew, proxies, journal: this.#journal, dice, leaseMs: LEASE_MS },
      server: server instanceof AttackedServer ? server : undefined,
      onLost: (lost) => {
        observer.mayGoBack = true;
        this.#desk.lost(lost);
      },
    });
    this.#faults = this.#striker(faults, dice);
    this.#desk = new Desk(
      this.crew,
      {
        ...{ seed, producers: PRODUCERS },
        mostItems: options.cluster ? ITEMS_IN_CLUSTER : Number.POSITIVE_INFINITY,
      },
      {
        onRead: (plan) => observer.inspect(plan),
        onGaveUp: (by, id, code) => this.#trouble(`${by} gave up ${id}: ${code}`),
      },
    );
  }

  #striker(faults: Faults, dice: Dice): Striker {
    const server = this.#server;
    if (server instanceof AttackedServer) return faults;
    if (server instanceof AttackedSentinels) return new SentinelFaults(server, faults);
    return new ClusterFaults({
      ...{ cluster: server, faults, dice, queue: QUEUE },
      open: () => this.#desk.open.map(({ id }) => id),
      afterKill: () => this.#observer.repair(),
    });
  }

  static async set(
    options: AttackOptions,
    { folder, ...folders }: { folder: string; journals: string; logs: string },
  ): Promise<Scene> {
    if (options.cluster) {
      const server = await AttackedCluster.start(folder, options.fsync);
      return new Scene(options, folders, { server, proxies: [] });
    }
    if (options.sentinel) {
      const server = await AttackedSentinels.start(options.fsync);
      return new Scene(options, folders, { server, proxies: [] });
    }
    const server = await AttackedServer.start(folder, options.fsync, options.stepsClock);
    const open = (name: string, swallowsNotices = false) =>
      BadNetwork.open({ name, toPort: server.port, swallowsNotices });
    const proxies = await Promise.all([
      open('net-workers-a'),
      open('net-workers-b'),
      open('net-producers'),
      open('net-waiters'),
      open('net-without-notices', true),
    ]);
    return new Scene(options, folders, { server, proxies });
  }

  /** Work and faults for as long as was asked for, then the rest of the work. */
  async play(): Promise<void> {
    const { minutes, seed, rates, fillsMemory, say } = this.#options;
    this.#fillPlaces();
    await this.#within(READY_MS, () => this.crew.members.every(({ ready }) => ready));
    if (this.#proxies.length > 0)
      this.#journal.write({
        ...{ does: 'fault', fault: 'swallow notices', target: 'net-without-notices' },
      });
    this.#observer.start();
    const lengthMs = minutes * 60_000;
    const schedule = scheduleOf(this.#possible(rates), lengthMs, new Dice(seed, -2));
    if (fillsMemory) schedule.push({ stroke: 'fill memory', atMs: lengthMs * 0.55 });
    const nemesis = new Nemesis(schedule, (stroke) => this.#faults.strike(stroke));
    const saying = setInterval(() => say(this.#progress()), SAY_MS);
    try {
      nemesis.start((error) => this.#trouble(`a fault failed: ${error}`));
      await this.#produce(lengthMs);
      await nemesis.close();
      await this.#drain();
    } finally {
      clearInterval(saying);
      await nemesis.close();
    }
    await this.#leave();
  }

  /** Leaves out, with a message, the faults that this machine cannot carry out. */
  #possible(rates: Rates): Rates {
    const { 'wrong clock': steps, ...others } = rates;
    if (steps === undefined) return rates;
    if (this.#server instanceof AttackedServer && this.#server.hasClock) return rates;
    this.#options.say(
      'left out: steps of the clock; they need Linux, a C compiler, and a Redis that is not in a container',
    );
    return others;
  }

  #fillPlaces(): void {
    const [a, b, producers, waiters, deaf] = this.#proxies;
    const server = this.#server;
    const place = (role: RoleName, number: number, proxy?: BadNetwork): Place => ({
      ...{ role, number },
      spared: role === 'worker' && number < this.#options.sparedWorkers,
      argument: {
        journals: this.#folders.journals,
        redis: proxy?.url ?? (server instanceof AttackedServer ? '' : server.url),
        queue: QUEUE,
        seed: this.#options.seed,
        leaseMs: LEASE_MS,
        concurrency: CONCURRENCY,
        notices: !proxy || proxy !== deaf,
        shards: this.#options.shards,
        shortLeases: this.#options.shortLeases,
      },
    });
    for (let i = 0; i < WORKERS; i += 1) this.crew.fill(place('worker', i, i % 2 ? b : a));
    for (let i = 0; i < PRODUCERS; i += 1) this.crew.fill(place('producer', i, producers));
    for (let i = 0; i < WAITERS; i += 1)
      this.crew.fill(place('waiter', i, i === WAITERS - 1 ? deaf : waiters));
    for (let i = 0; i < this.#options.takers; i += 1)
      this.crew.fill(place('taker', i, i % 2 ? b : producers));
  }

  async #produce(lengthMs: number): Promise<void> {
    const pace = new Pace(this.#options.itemsPerSecond, this.#options.say);
    const endMs = performance.now() + lengthMs;
    while (performance.now() < endMs) {
      while (pace.allows(this.#desk.items, this.#observer.settled) && this.#desk.order());
      await sleep(20);
    }
  }

  async #drain(): Promise<void> {
    this.#journal.write({ does: 'drain', open: this.#desk.open.length });
    this.crew.tell('taker', { task: 'put no more' });
    const untilMs = performance.now() + DRAIN_MS;
    const requests = await this.#within(DRAIN_MS, () => this.#desk.open.length === 0);
    // Requests also end under a wrong clock. Items that are due at a given time wait until the clock is right.
    if (this.#server instanceof AttackedServer && this.#server.offsetMs !== 0) {
      this.#server.stepClock(0);
      this.#journal.write({ did: 'step clock', offsetMs: 0 });
    }
    const taken = await this.#observer.untilTaken(untilMs - performance.now());
    for (const left of taken) this.#trouble(`not taken: ${left}`);
    if (requests && taken.length === 0) {
      this.#journal.write({ did: 'drain' });
      return;
    }
    if (requests) return;
    const ids = this.#desk.open.map(({ id }) => id);
    const described = await this.#observer.describe(ids);
    const stages = this.#desk.open.map(({ id, stage }) => `${id} is ${stage}`);
    this.#trouble(`not drained: ${[...stages, ...described].join('; ')}`);
  }

  /** Ends all processes; any key that is in Redis after that is a leak. */
  async #leave(): Promise<void> {
    for (const name of await this.crew.close(STOP_MS)) this.#trouble(`${name} did not end in time`);
    await this.#observer.dropQueues();
    const left = await this.#observer.findKeysLeft();
    if (this.#server instanceof AttackedCluster) this.errors = await this.#server.errors();
    if (left.length > 0) this.#trouble(`keys are left: ${left.slice(0, 10).join(' ')}`);
  }

  async #within(ms: number, condition: () => boolean): Promise<boolean> {
    const endMs = performance.now() + ms;
    while (!condition() && performance.now() < endMs) await sleep(20);
    return condition();
  }

  #trouble(text: string): void {
    this.troubles.push(text);
    this.#options.say(`TROUBLE: ${text}`);
  }

  #progress(): string {
    const faults = [...this.#faults.done].map(([fault, count]) => `${fault} ${count}`);
    const { settled } = this.#observer;
    const counts = [`${settled} of ${this.#desk.items} settled`, `${this.#desk.open.length} open`];
    return [...counts, ...faults].join(' · ');
  }

  async clear(): Promise<void> {
    if (this.#cleared) return;
    this.#cleared = true;
    this.crew.killAll();
    await this.#observer.close();
    for (const proxy of this.#proxies) await proxy[Symbol.asyncDispose]();
    await this.#server[Symbol.asyncDispose]();
  }
}
