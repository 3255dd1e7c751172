import { setTimeout as sleep } from 'node:timers/promises';
import type { BadNetwork, Direction } from '../attacked/bad-network.js';
import type { Crew, Member, RoleName } from '../attacked/crew.js';
import { type AttackedServer, type LostWrites, usedMemory } from '../attacked/server.js';
import type { Dice } from '../contract/dice.js';
import type { Fault } from '../contract/history.js';
import type { Journal } from '../contract/journal.js';

/** A fault that the schedule may ask for; 'kill redis' includes the restart. */
export type Stroke = Exclude<Fault, 'restart redis' | 'swallow notices'>;

/** Carries out the faults of the schedule, and counts them. */
export interface Striker {
  strike(stroke: Stroke): Promise<void>;
  readonly done: ReadonlyMap<Fault, number>;
}

/** Faults of clusters, some also behind Sentinel: see cluster/cluster-faults.ts and sentinel/sentinel-faults.ts. */
const OF_CLUSTERS = ['fail over', 'kill master', 'move queue slot', 'move request slot'] as const;
export type ClusterStroke = (typeof OF_CLUSTERS)[number];
export const isOfClusters = (stroke: Stroke): stroke is ClusterStroke =>
  OF_CLUSTERS.some((each) => each === stroke);

const FULL_MS = 10_000;
/** Largest lag of a replica that is promoted, and largest age of a snapshot. */
const LAG_MS = 60;
const SNAPSHOT_AGE_MS = 1_000;
/** Length of outages in worker leases; a share of them is so long that it outlasts the leases of producers. */
const [SHORTEST_OUTAGE, LONGEST_OUTAGE] = [0.5, 3];
const OUTLASTS = 0.3;
const [SHORTEST_LONG_MS, LONGEST_LONG_MS] = [18_000, 25_000];
/** How far a clock is stepped, and for how long, unless it stays wrong. */
const [SHORTEST_STEP_MS, FAR_STEP_MS, LONGEST_STEP_MS] = [2_000, 300_000, 3_600_000];
const [SHORTEST_WRONG_MS, LONGEST_WRONG_MS] = [2_000, 20_000];
const STAYS_WRONG = 0.3;
/** Memory that is left when it is filled: enough to finish work, not to submit more. */
const ROOM_BYTES = 100_000;

/** Carries out faults, and writes down when each begins and ends. */
export class Faults implements Striker {
  readonly #crew: Crew;
  readonly #proxies: readonly BadNetwork[];
  readonly #server: AttackedServer | undefined;
  readonly #journal: Journal;
  readonly #dice: Dice;
  readonly #leaseMs: number;
  readonly #onLost: (lost: LostWrites) => void;
  /** Targets of faults under way; each has only one at a time. */
  readonly #troubled = new Set<BadNetwork | AttackedServer>();
  readonly done = new Map<Fault, number>();

  constructor(parts: {
    crew: Crew;
    proxies: readonly BadNetwork[];
    /** undefined for a cluster, and behind Sentinel: those servers have other faults. */
    server: AttackedServer | undefined;
    journal: Journal;
    dice: Dice;
    leaseMs: number;
    /** Called at once when the server has lost writes. */
    onLost?: (lost: LostWrites) => void;
  }) {
    this.#crew = parts.crew;
    this.#proxies = parts.proxies;
    this.#server = parts.server;
    this.#journal = parts.journal;
    this.#dice = parts.dice;
    this.#leaseMs = parts.leaseMs;
    this.#onLost = parts.onLost ?? (() => {});
  }

  /** Resolves when the fault is over. It waits for an earlier fault of the same target. */
  async strike(stroke: Stroke): Promise<void> {
    const dice = this.#dice;
    const direction = dice.pick<Direction>(['to redis', 'from redis', 'both']);
    switch (stroke) {
      case 'kill worker':
        return this.#kill(stroke, 'worker');
      case 'kill producer':
        return this.#kill(stroke, 'producer');
      case 'kill waiter':
        return this.#kill(stroke, 'waiter');
      case 'kill taker':
        return this.#kill(stroke, 'taker');
      case 'freeze worker': {
        const ms = this.#leaseMs + dice.between(500, 3_000);
        const member = await this.#victim('worker', () => true);
        return this.during(stroke, member.name, () => this.#crew.freeze(member, ms));
      }
      case 'cut connections': {
        const proxy = this.#proxies[dice.whole(0, this.#proxies.length - 1)] as BadNetwork;
        return this.during(stroke, proxy.name, async () => void proxy.cut());
      }
      case 'delay':
        return this.#trouble(stroke, dice.between(1_000, 6_000), (proxy) =>
          proxy.delay(dice.between(20, 400), direction),
        );
      case 'black hole':
        return this.#trouble(stroke, dice.between(500, 6_000), (proxy) => proxy.swallow(direction));
      case 'freeze redis':
        return this.#ofServer(stroke, (server) => this.#freeze(server, this.#outageMs()));
      case 'stop redis':
        return this.#ofServer(stroke, (server) =>
          this.during(stroke, 'redis', () => this.#restart(server, this.#outageMs())),
        );
      case 'promote replica':
      case 'restore snapshot':
        return this.#ofServer(stroke, (server) =>
          this.during(stroke, 'redis', () => this.#loseWrites(server, stroke)),
        );
      case 'wrong clock':
        return this.#stepClock();
      default:
        if (isOfClusters(stroke)) throw new Error(`${stroke} needs a cluster`);
        return this.#strikeServer(stroke, dice.between(100, 2_500));
    }
  }

  async #kill(fault: Fault, role: RoleName): Promise<void> {
    const member = await this.#victim(role, ({ place }) => !place.spared);
    await this.during(fault, member.name, () => this.#crew.kill(member));
  }

  /** Chooses a process that is up and is not the target of another fault, waiting for one if necessary. */
  async #victim(role: RoleName, may: (member: Member) => boolean): Promise<Member> {
    for (;;) {
      const choice = this.#crew.members.filter(
        (it) => it.place.role === role && it.ready && !it.struck && may(it),
      );
      const member = choice[this.#dice.whole(0, choice.length - 1)];
      if (member) {
        member.struck = true;
        return member;
      }
      await sleep(20);
    }
  }

  async #trouble(fault: Fault, ms: number, begin: (proxy: BadNetwork) => void): Promise<void> {
    const ends = this.#dice.chance(0.6) ? 'told' : 'untold';
    const proxy = this.#proxies[this.#dice.whole(0, this.#proxies.length - 1)] as BadNetwork;
    await this.#oneAtATime(proxy, () =>
      this.during(fault, proxy.name, async () => {
        begin(proxy);
        await sleep(ms);
        proxy.heal(ends);
      }),
    );
  }

  async #ofServer(fault: Fault, work: (server: AttackedServer) => Promise<void>): Promise<void> {
    const server = this.#server;
    if (!server) throw new Error(`${fault} needs a server of its own`);
    await this.#oneAtATime(server, () => work(server));
  }

  #outageMs(): number {
    const dice = this.#dice;
    if (dice.chance(OUTLASTS)) return dice.between(SHORTEST_LONG_MS, LONGEST_LONG_MS);
    return this.#leaseMs * dice.between(SHORTEST_OUTAGE, LONGEST_OUTAGE);
  }

  #freeze(server: AttackedServer, ms: number): Promise<void> {
    return this.during('freeze redis', 'redis', () => server.freeze(ms));
  }

  async #restart(server: AttackedServer, awayMs: number): Promise<void> {
    await this.during('kill redis', 'redis', () => server.kill());
    await sleep(awayMs);
    await this.during('restart redis', 'redis', () => server.startAgain());
  }

  async #loseWrites(
    server: AttackedServer,
    stroke: 'promote replica' | 'restore snapshot',
  ): Promise<void> {
    const dice = this.#dice;
    const onLost = (lost: LostWrites) => this.lost(lost);
    const awayMs = dice.chance(0.5) ? 0 : dice.between(0, this.#leaseMs);
    if (stroke === 'restore snapshot')
      return server.restoreSnapshot({ ageMs: dice.between(5, SNAPSHOT_AGE_MS), awayMs, onLost });
    const lagMs = dice.magnitude(5, LAG_MS);
    const before = server.offsetMs;
    // Each server has a clock of its own.
    const offsetMs = server.hasClock && dice.chance(0.3) ? this.#wrongBy() : before;
    await server.promote({ lagMs, awayMs, offsetMs, onLost });
    if (offsetMs !== before) this.#journal.write({ did: 'step clock', offsetMs });
  }

  #wrongBy(): number {
    const dice = this.#dice;
    // Half of them are so large that waiting for the clock to come back would outlast the run.
    const ms = dice.chance(0.5)
      ? dice.magnitude(SHORTEST_STEP_MS, FAR_STEP_MS)
      : dice.whole(FAR_STEP_MS, LONGEST_STEP_MS);
    return dice.chance(0.5) ? ms : -ms;
  }

  /** Runs beside other faults of the server. */
  async #stepClock(): Promise<void> {
    const server = this.#server;
    if (!server?.hasClock) throw new Error('the server has no clock that can be stepped');
    const set = (offsetMs: number) => {
      server.stepClock(offsetMs);
      this.#journal.write({ did: 'step clock', offsetMs });
    };
    await this.during('wrong clock', 'redis', async () => {
      const [offsetMs, stays] = [this.#wrongBy(), this.#dice.chance(STAYS_WRONG)];
      set(offsetMs);
      if (stays) return;
      await sleep(this.#dice.between(SHORTEST_WRONG_MS, LONGEST_WRONG_MS));
      set(0);
    });
  }

  async #strikeServer(
    fault: 'kill redis' | 'forget scripts' | 'fill memory',
    awayMs: number,
  ): Promise<void> {
    await this.#ofServer(fault, async (server) => {
      const { client } = server;
      if (fault === 'kill redis') {
        await this.#restart(server, awayMs);
      } else if (fault === 'forget scripts') {
        await this.during(fault, 'redis', async () => void (await client.script('FLUSH')));
      } else {
        await this.during(fault, 'redis', async () => {
          const bytes = (await usedMemory(server)) + ROOM_BYTES;
          await client.config('SET', 'maxmemory', bytes);
          await sleep(FULL_MS);
          await client.config('SET', 'maxmemory', 0);
        });
      }
    });
  }

  /** Writes down the beginning and the end of a fault. */
  async during(fault: Fault, target: string, work: () => Promise<void>): Promise<void> {
    this.#journal.write({ does: 'fault', fault, target });
    await work();
    this.#journal.write({ did: 'fault', fault, target });
    this.done.set(fault, (this.done.get(fault) ?? 0) + 1);
  }

  /** Writes down that the server may have lost writes. */
  lost(lost: LostWrites): void {
    const { sureNs, goneNs } = lost;
    this.#journal.write({ did: 'lose writes', sureNs: `${sureNs}`, goneNs: `${goneNs}` });
    this.#onLost(lost);
  }

  async #oneAtATime(target: BadNetwork | AttackedServer, work: () => Promise<void>): Promise<void> {
    while (this.#troubled.has(target)) await sleep(20);
    this.#troubled.add(target);
    try {
      await work();
    } finally {
      this.#troubled.delete(target);
    }
  }
}
