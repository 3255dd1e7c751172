import {
  type Claim,
  ControlCommands,
  type Entry,
  indexOf,
  type Outcome,
  parseToken,
  type Tended,
} from '@piecework/protocol';
import { clockOffset, moveClock } from '../support/clock.js';
import { fieldsOf, freshName, given, items, type Options, type Scene } from '../support/given.js';
import { keysOf } from '../support/leaks.js';
import { faultsOf, type Picture, peek, peekQueue, queueFaultsOf } from '../support/peek.js';
import { Actor, type Call, call } from './actor.js';
import { Operator, PRIORITIES } from './operator.js';
import { Redriver } from './redriver.js';

/*
 * A small world that lives by the protocol: submitters, workers, tickers and an admin, each of which
 * does one call at a time, when told, and knows only what its replies said. Any call may be sent
 * twice, arrive again much later (a ghost), or be the last one of its sender; time may jump. After
 * every call the books are read back.
 *
 * What an actor does here is what docs/protocol.md says it has to do, no more: the world is the
 * smallest client that keeps the promises.
 */

export interface Setting {
  readonly workers: number;
  readonly slots: number;
  readonly limit: number;
  readonly attempts: number;
  readonly maxCrashes: number;
  readonly onProducerLost: 'seal' | 'cancel';
  /** Items that a submitter adds, in chunks of three. */
  readonly items: number;
  /** Whether the first request is there from the start. */
  readonly submitted: boolean;
  /** Whether all of it has failed then, so that it may be redriven. */
  readonly failed: boolean;
  /** Whether an admin cancels and drops. */
  readonly meddling: boolean;
  /** Whether an operator pauses, resumes, holds and changes requests, and somebody redrives them. */
  readonly operated: boolean;
  readonly deadlineMs: number | null;
  /** More failures than so many end it. */
  readonly tolerated: number | null;
  /** Whether a second request shares the queue; its priority is lower by so much. */
  readonly neighbour: number | null;
  /** Whether the server's clock is set to another time now and then, by an hour at most. */
  readonly clockSteps: boolean;
}

/** One step: who does what, and what goes wrong. All are taken modulo what there is. */
export interface Step {
  readonly who: number;
  readonly what: number;
  readonly fault: number;
}

const LEASE_MS = 30_000;
const PRODUCER_LEASE_MS = 12_000;

const ACTIVE = new Set(['open', 'sealed', 'cancelling']);

/** By what the server's clock is set to another time. */
const CLOCK_STEPS_MS = [
  ...[-1_000, -9_000, -40_000, -600_000, -3_600_000],
  ...[1_000, 9_000, 40_000, 600_000, 3_600_000],
];

/** Submits one life of an id: intent, create, append, push, seal. */
class Submitter extends Actor {
  done = false;
  #generation = 0;
  #sent = 0;
  readonly #owner = freshName('owner');

  constructor(
    world: World,
    readonly scene: Scene,
  ) {
    super(world);
  }

  protected choose(): Call | undefined {
    const { queue, request, id } = this.scene;
    if (this.done) return undefined;
    if (this.#generation === 0) {
      return call(
        () => queue.intent(id),
        (generation) => {
          this.#generation = generation;
          this.todo.push(() => this.#create(generation));
        },
      );
    }
    const { items: total } = this.world.setting;
    const generation = this.#generation;
    if (this.#sent < total) {
      const first = this.#sent;
      const chunk = items(Math.min(3, total - first), first);
      return call(
        () => request.append(generation, this.#owner, first, chunk),
        (appended) => {
          if (appended.verdict === 'ok') {
            this.#sent = first + chunk.length;
            this.push(this.scene, { generation, ...appended });
          } else this.done = true;
        },
      );
    }
    const sent = this.#sent;
    return call(
      () => request.seal(generation, this.#owner, sent),
      (sealed) => {
        this.done = true;
        if (sealed.verdict === 'complete') this.finish(this.scene, generation, sealed.outcome);
      },
    );
  }

  #create(generation: number): Call {
    const { request } = this.scene;
    const fields = fieldsOf(this.world.optionsOf(this.scene), this.scene.queue.keys.queue);
    return call(
      () => request.create(generation, this.#owner, PRODUCER_LEASE_MS, fields),
      (created) => {
        if (created.verdict === 'created') return;
        if (created.verdict === 'exists') {
          this.done = true;
          if (created.generation !== generation) this.finish(this.scene, generation, 'gone');
          return;
        }
        this.finish(this.scene, generation, 'gone');
        this.#generation = 0;
      },
    );
  }
}

/** What a worker has to do with one life of one request. */
class Hold {
  op = 0;
  permits = 0;
  dueNow = 0;
  until = 0;
  /** Whether the server's clock went forward since its lease was confirmed: it may be over there. */
  doubtful = false;
  noted = 0;
  leaving = false;
  readonly running = new Set<string>();
  /** A suspect that waits until nothing else runs here. */
  suspect: string | undefined;
  /** Handlers that outlived the lease: a success still counts. */
  readonly lost = new Set<string>();
  outcomes: Outcome[] = [];

  constructor(
    readonly scene: Scene,
    readonly generation: number,
  ) {}

  get spare(): number {
    return Math.max(0, this.permits - this.busy);
  }

  /** What needs a permit. */
  get busy(): number {
    return this.running.size + (this.suspect === undefined ? 0 : 1);
  }

  confirm(until: number): void {
    this.until = until;
    this.doubtful = false;
  }

  lose(): void {
    this.suspect = undefined;
    for (const entry of this.running) this.lost.add(entry);
    this.running.clear();
    this.outcomes = this.outcomes.filter(({ kind }) => kind === 's');
    this.permits = 0;
  }
}

class Worker extends Actor {
  readonly name = freshName('w');
  readonly holds = new Map<string, Hold>();
  op = 0;
  /** For so many more deeds it does not look at its clock. */
  frozen = 0;

  constructor(world: World) {
    super(world);
  }

  /** Stops believing in leases that ended by its own clock. */
  fence(): void {
    for (const hold of this.holds.values()) if (this.world.time >= hold.until) hold.lose();
  }

  get free(): number {
    let held = 0;
    for (const { permits, busy } of this.holds.values()) held += Math.max(permits, busy);
    return this.world.setting.slots - held;
  }

  get idle(): boolean {
    return this.todo.length === 0 && this.holds.size === 0;
  }

  /** Who of its holds waits for a suspect, or runs it: nothing else is taken meanwhile. */
  get #alone(): Hold | undefined {
    const holds = [...this.holds.values()];
    return holds.find((hold) => hold.suspect !== undefined || hold === this.#aloneWith);
  }
  #aloneWith: Hold | undefined;

  /** Tells the server that the suspect runs now, once nothing else does. */
  #runAlone(): Call | undefined {
    const hold = this.#alone;
    const { suspect } = hold ?? {};
    if (!hold || suspect === undefined) return undefined;
    for (const { running, lost, outcomes, permits, busy } of this.holds.values()) {
      if (running.size + lost.size + outcomes.length > 0 || permits > busy) return undefined;
    }
    // It may die of it before it hears the answer.
    this.world.alone.add(`${hold.scene.id} ${suspect}`);
    return call(
      () => hold.scene.request.runAlone(hold.generation, this.name, 1, [suspect]),
      ({ verdict }) => {
        if (hold.suspect !== suspect) return;
        if (verdict === 'gone') return this.#forget(hold);
        if (verdict === 'lost') return hold.lose();
        hold.suspect = undefined;
        this.#aloneWith = hold;
        hold.running.add(suspect);
        this.world.started.add(`${hold.scene.id} ${suspect}`);
      },
    );
  }

  protected choose(what: number): Call | undefined {
    for (const [key, hold] of this.holds) {
      const busy = hold.permits + hold.busy + hold.lost.size + hold.outcomes.length;
      if (busy === 0) this.holds.delete(key);
    }
    const { running, lost, outcomes } = this.#aloneWith ?? {};
    if (!running || !lost || !outcomes || running.size + lost.size + outcomes.length === 0)
      this.#aloneWith = undefined;
    const alone = this.#runAlone();
    if (alone) return alone;
    const holds = [...this.holds.values()];
    const hold = holds[what % Math.max(1, holds.length)];
    if (!hold) return this.#pop();
    switch (what % 10) {
      case 0:
        return this.#pop() ?? this.#work(hold);
      case 1:
        return this.#renew(hold);
      case 2:
        return this.#compare(hold);
      case 3:
        hold.leaving = true;
        return this.#work(hold);
      case 4:
        this.endOne(hold, what);
        this.endOne(hold, what + 1);
        return this.#work(hold);
      default:
        if (hold.spare === 0) this.endOne(hold, what);
        return this.#work(hold);
    }
  }

  /** A handler ends. */
  endOne(hold: Hold, what: number): void {
    const { world } = this;
    const [zombie] = hold.lost;
    if (zombie !== undefined && what % 3 === 0) {
      hold.lost.delete(zombie);
      if (what % 2 === 0) hold.outcomes.push({ entry: zombie, kind: 's', value: this.name });
      return;
    }
    const entry = [...hold.running][what % Math.max(1, hold.running.size)];
    if (entry === undefined) return;
    hold.running.delete(entry);
    const chance = world.healing ? 0 : what % 7;
    if (chance < 4) hold.outcomes.push({ entry, kind: 's', value: this.name });
    else if (chance === 4) hold.outcomes.push({ entry, kind: 'b' });
    else {
      world.failures.push(`${hold.scene.id} ${entry}`);
      const delayMs = chance === 5 ? 0 : 4_000;
      hold.outcomes.push({ entry, kind: 'f', value: '{}', delayMs });
    }
  }

  /** Settles, reads or takes: whatever there is to do. */
  #work(hold: Hold): Call | undefined {
    const { request } = hold.scene;
    const { generation } = hold;
    if (this.#alone) hold.leaving = true;
    const keep = hold.leaving ? hold.busy : hold.permits;
    if (!hold.leaving && hold.dueNow > 0 && hold.spare > 0) {
      const max = hold.spare;
      return call(
        () => request.take(generation, this.name, max),
        (taken) => {
          if (taken === 'gone') this.#forget(hold);
          else if (taken === 'lost') hold.lose();
          else {
            hold.dueNow = taken.left;
            this.#start(hold, taken.entries);
          }
        },
      );
    }
    const read = hold.leaving ? 0 : hold.spare;
    if (hold.outcomes.length + read === 0 && keep >= hold.permits) return undefined;
    const outcomes = hold.outcomes.splice(0);
    const running = hold.busy;
    const sentAt = this.world.time;
    this.op += 1;
    const numbers = { op: this.op, leaseMs: LEASE_MS, keep, running, read };
    return call(
      () => request.settle(generation, this.name, numbers, outcomes),
      ({ settled, entries, unsure }) => {
        if (settled.verdict !== 'ok') {
          if (settled.verdict === 'complete') {
            this.finish(hold.scene, generation, settled.outcome);
          }
          this.#forget(hold);
          return;
        }
        // Fewer permits than what runs: the lease was lost before this call.
        if (settled.permits < hold.busy) hold.lose();
        hold.permits = settled.permits;
        hold.confirm(sentAt + LEASE_MS);
        hold.dueNow = settled.dueNow;
        this.#start(hold, entries);
        const room = Math.min(read, settled.permits - running);
        const dry = entries.length < room && settled.dueNow === 0 && !unsure;
        if (dry) hold.leaving = true;
        this.push(hold.scene, { generation, ...settled });
        if (settled.nextDue > 0 && settled.nextDue !== hold.noted) {
          hold.noted = settled.nextDue;
          const { queue, id } = hold.scene;
          this.todo.push(() => call(() => queue.note(id, generation, settled.nextDue)));
        }
      },
    );
  }

  #start(hold: Hold, entries: readonly Entry[]): void {
    const suspect = entries.find((one) => one.suspect && hold.spare > 0 && !this.#alone)?.entry;
    // Whatever came along goes back.
    if (suspect !== undefined) hold.suspect = suspect;
    for (const { entry, suspect: last } of entries) {
      if (entry === suspect) continue;
      if (hold.spare > 0 && !last && !this.#alone) {
        hold.running.add(entry);
        this.world.started.add(`${hold.scene.id} ${entry}`);
      } else hold.outcomes.push({ entry, kind: 'b' });
    }
  }

  #forget(hold: Hold): void {
    for (const [key, other] of this.holds) if (other === hold) this.holds.delete(key);
  }

  #pop(): Call | undefined {
    const want = this.free;
    if (want <= 0 || this.#alone) return undefined;
    const { connection, queue } = this.world.scenes[0] as Scene;
    const { lists } = queue.keys;
    return call(
      async () =>
        (await connection.client.call('lmpop', lists.length, ...lists, 'RIGHT', 'COUNT', want)) as
          | [string, string[]]
          | null,
      (popped) => {
        const lives = new Map<string, string[]>();
        for (const token of popped?.[1] ?? []) {
          const { id, generation, epoch } = parseToken(token);
          const life = `${id} ${generation}`;
          lives.set(life, [...(lives.get(life) ?? []), epoch]);
        }
        for (const [life, epochs] of lives) {
          const [id, generation] = life.split(' ') as [string, string];
          const scene = this.world.scenes.find((one) => one.id === id) as Scene;
          this.todo.push(() => this.#enter(scene, Number(generation), epochs));
        }
      },
    );
  }

  #enter(scene: Scene, generation: number, epochs: string[]): Call {
    this.op += 1;
    const free = this.#alone ? 0 : Math.max(0, this.free);
    const [op, want, sentAt] = [this.op, Math.min(epochs.length, free), this.world.time];
    return call(
      () =>
        scene.request.enter({
          generation,
          worker: this.name,
          op,
          want,
          leaseMs: LEASE_MS,
          tasks: '*',
          epochs,
        }),
      (entered) => {
        const key = `${scene.id} ${generation}`;
        if (entered.verdict === 'complete') this.finish(scene, generation, entered.outcome);
        if (entered.verdict !== 'ok') {
          this.holds.delete(key);
          return;
        }
        this.push(scene, { generation, ...entered });
        const hold = this.holds.get(key) ?? new Hold(scene, generation);
        // Permits may have been withdrawn and granted anew in between: the reply looks the same, so
        // the clock decides, which is looked at again now that the reply is here.
        if (this.world.time >= hold.until || entered.permits < hold.busy) hold.lose();
        hold.permits = entered.permits;
        hold.confirm(sentAt + LEASE_MS);
        hold.dueNow = entered.dueNow;
        hold.leaving = entered.permits === 0 || this.#alone !== undefined;
        this.holds.set(key, hold);
      },
    );
  }

  #renew(hold: Hold): Call | undefined {
    if (hold.permits === 0) return undefined;
    const sentAt = this.world.time;
    return call(
      () => hold.scene.request.renew(hold.generation, this.name, LEASE_MS, []),
      (renewed) => {
        if (renewed.verdict === 'ok' && renewed.permits >= hold.busy) {
          hold.confirm(sentAt + LEASE_MS);
        } else hold.lose();
      },
    );
  }

  /** Compares what the server thinks it holds with what it runs, and hands back the unknown. */
  #compare(hold: Hold): Call {
    const { request, connection } = hold.scene;
    return call(
      () =>
        connection.client
          .xpending(request.keys.work, 'workers', '-', '+', 100, this.name)
          .catch(() => []),
      (pending) => {
        const known = new Set([
          ...hold.running,
          ...(hold.suspect === undefined ? [] : [hold.suspect]),
          ...hold.lost,
          ...hold.outcomes.map(({ entry }) => entry),
        ]);
        for (const [entry] of pending as [string][]) {
          if (!known.has(entry)) hold.outcomes.push({ entry, kind: 'b' });
        }
      },
    );
  }

  /** What it runs of a request under a lease that holds, by its own clock and the server's. */
  valid(scene: Scene): string[] {
    const entries: string[] = [];
    for (const hold of this.holds.values()) {
      const holds = this.world.time < hold.until && !hold.doubtful;
      if (hold.scene === scene && holds) entries.push(...hold.running);
    }
    return entries;
  }

  override die(): void {
    super.die();
    this.holds.clear();
  }
}

class Ticker extends Actor {
  constructor(world: World) {
    super(world);
  }

  protected choose(): Call {
    const { queue } = this.world.scenes[0] as Scene;
    return call(
      () => queue.tick('', ''),
      ({ claims, resumedAt, now }) => {
        for (const claim of claims) this.todo.push(() => this.#tend(claim, resumedAt, now));
      },
    );
  }

  #tend(claim: Claim, resumedAt: number, tickedAt: number): Call {
    const scene = this.world.scenes.find(({ id }) => id === claim.id) as Scene;
    return call(
      () => scene.request.tend(claim.generation, claim.passed, resumedAt, undefined, tickedAt),
      (tended) => {
        if (tended.verdict === 'ok') {
          const written: Tended = tended;
          this.todo.unshift(() => call(() => scene.queue.writeBack(claim, written)));
        } else {
          const outcome = tended.verdict === 'complete' ? tended.outcome : 'gone';
          this.finish(scene, claim.generation, outcome);
        }
      },
    );
  }

  get idle(): boolean {
    return this.todo.length === 0;
  }
}

class Admin extends Actor {
  constructor(world: World) {
    super(world);
  }

  protected choose(what: number): Call | undefined {
    const { scenes } = this.world;
    const scene = scenes[what % scenes.length] as Scene;
    if (what % 16 === 5) {
      const seen = this.world.pictures.get(scene.id)?.generation ?? 0;
      this.world.dropped.add(scene.id);
      return call(
        () => scene.request.drop(seen),
        (dropped) => {
          if (dropped.verdict !== 'dropped') return;
          this.finish(scene, dropped.generation, 'dropped');
        },
      );
    }
    if (what % 8 !== 1) return undefined;
    const generation = this.world.pictures.get(scene.id)?.generation ?? 0;
    this.world.cancelled.add(scene.id);
    return call(
      () => scene.request.cancel(generation),
      (cancelled) => {
        if (cancelled.verdict === 'complete') this.finish(scene, generation, cancelled.outcome);
        else if (cancelled.verdict === 'cancelling') {
          this.todo.push(() => call(() => scene.queue.note(scene.id, generation, 0)));
        }
      },
    );
  }
}

const ABOVE = 'granted above the limit';

const ranAs = (started: string, { id }: Scene, index: number) =>
  started.startsWith(`${id} `) && started.endsWith(`-${index}`);

/** What may not have come since the picture before. */
function faultsSince(
  before: Picture | undefined,
  { granted, limit, fields, ...now }: Picture,
): string[] {
  if (!before || before.generation !== now.generation || before.status === 'none') return [];
  if (now.status === 'dropped' || now.status === 'void') return [];
  const faults: string[] = [];
  const more = granted - before.granted;
  // A lowered limit: what was granted may drain.
  if (granted > limit && more > 0) faults.push(`granted ${more} more above the limit`);
  const held = (picture: Pick<Picture, 'fields' | 'now'>) =>
    picture.fields['paused'] === '1' || Number(picture.fields['heldUntil'] ?? 0) > picture.now;
  if (held(before) && held({ fields, ...now })) {
    if (more > 0) faults.push(`granted ${more} while it is halted`);
    if (now.out + now.outBefore > before.out + before.outBefore) faults.push('minted while halted');
  }
  const settled = (counts: Picture['counts']) => counts.succeeded + counts.cancelled;
  if (settled(now.counts) < settled(before.counts)) faults.push('what was settled is not any more');
  const [was, is] = [before.fields['endReason'], fields['endReason']];
  if (was !== undefined && is !== was) faults.push(`ended for ${was}, then for ${is}`);
  return faults;
}

export class World {
  readonly scenes: Scene[] = [];
  readonly pictures = new Map<string, Picture>();
  /** 'id entry' of every handler that was started; one line for each that failed. */
  readonly started = new Set<string>();
  readonly failures: string[] = [];
  /** 'id entry' of every suspect that ran alone. */
  readonly alone = new Set<string>();
  readonly cancelled = new Set<string>();
  readonly dropped = new Set<string>();
  readonly log: string[] = [];
  /** How many requests ended in which outcome. */
  readonly ends: Record<string, number> = {};
  /** How many sub-requests failed by a crash. */
  crashed = 0;
  /** How many requests ended in a life that was a redrive. */
  redriven = 0;
  healing = false;
  healedAfterMs = 0;
  #workers: Worker[] = [];
  #tickers: Ticker[] = [];
  #submitters: Submitter[] = [];
  #admin: Admin;
  #operator: Operator;
  #redrivers: Redriver[];
  /** Calls that will arrive (again) at a later step. */
  #ghosts: { readonly send: () => Promise<unknown>; readonly at: number }[] = [];
  #steps = 0;
  #steppedMs = 0;

  private constructor(readonly setting: Setting) {
    this.#admin = new Admin(this);
    this.#operator = new Operator(this);
    this.#redrivers = [new Redriver(this), new Redriver(this)];
  }

  static async create(setting: Setting): Promise<World> {
    const world = new World(setting);
    const queue = freshName('queue');
    for (let i = 0; i < (setting.neighbour === null ? 1 : 2); i += 1) {
      const scene = await given.nothing({ queue });
      world.scenes.push(scene);
      // Two would be submitters of one id: the second starts its next life, or is refused.
      world.#submitters.push(new Submitter(world, scene), new Submitter(world, scene));
    }
    for (let i = 0; i < setting.workers; i += 1) world.#workers.push(new Worker(world));
    world.#tickers.push(new Ticker(world), new Ticker(world));
    if (setting.submitted) {
      const [submitter] = world.#submitters as [Submitter];
      while (!submitter.done) await world.#act(submitter, 0, 0);
      if (setting.failed) await world.#failAll(world.scenes[0] as Scene);
    }
    return world;
  }

  /** One who comes and goes fails everything, before anybody else is there. */
  async #failAll({ request, id }: Scene): Promise<void> {
    const { generation } = this.pictures.get(id) as Picture;
    const name = freshName('w');
    for (let op = 1; this.pictures.get(id)?.status !== 'complete'; op += 2) {
      const entered = await request.enter({
        generation,
        worker: name,
        op,
        want: 9,
        leaseMs: LEASE_MS,
        tasks: '*',
        epochs: [],
      });
      if (entered.verdict !== 'ok') break;
      const entries = (await request.read(name, entered.permits)) as Entry[];
      const outcomes = entries.map(({ entry }): Outcome => {
        const run = `${id} ${entry}`;
        this.started.add(run);
        for (let i = 0; i < this.setting.attempts; i += 1) this.failures.push(run);
        return { entry, kind: 'f', value: '{}', delayMs: -1 };
      });
      const { since } = entered;
      const numbers = { op: op + 1, since, leaseMs: LEASE_MS, keep: 0, running: 0, read: 0 };
      await request.settle(generation, name, numbers, outcomes);
      await this.check('all fails');
    }
  }

  optionsOf(scene: Scene): Options {
    const { limit, attempts, maxCrashes, onProducerLost, neighbour } = this.setting;
    const { deadlineMs, tolerated } = this.setting;
    const priority = scene === this.scenes[0] ? 50 : 50 + (neighbour ?? 0);
    const ends =
      tolerated === null ? {} : { toleratedFailures: tolerated, onExceeded: 'cancel' as const };
    const times = deadlineMs === null ? {} : { deadlineMs };
    return { limit, attempts, maxCrashes, onProducerLost, priority, ...ends, ...times };
  }

  async step({ who, what, fault }: Step): Promise<void> {
    this.#steps += 1;
    await this.#haunt(this.#steps);
    const pick = <T>(list: readonly T[]): T => list[what % list.length] as T;
    if (who < 6) {
      const worker = this.#workers[who % this.#workers.length] as Worker;
      if (worker.alive) {
        // A frozen process wakes up between its look at the clock and the call.
        if (fault === 99 || what % 29 === 0) worker.frozen = 3;
        if (worker.frozen > 0) worker.frozen -= 1;
        else worker.fence();
        await this.#act(worker, what, fault);
      } else if (what % 5 === 0) this.#workers[who % this.#workers.length] = new Worker(this);
    } else if (who < 8) {
      const i = who % this.#tickers.length;
      const ticker = this.#tickers[i] as Ticker;
      if (ticker.alive) await this.#act(ticker, what, fault);
      else this.#tickers[i] = new Ticker(this);
    } else if (who < 11) {
      const submitter = pick(this.#submitters);
      if (submitter.alive) await this.#act(submitter, what, fault);
    } else if (who === 11) {
      moveClock([100, 900, 3_000, 5_500, 8_500, 16_000, 31_000][what % 7] as number);
      this.log.push(`clock ${clockOffset()}`);
    } else if (who === 19) {
      if (this.setting.clockSteps) this.#stepClock(what);
    } else if (who > 12) {
      if (this.setting.operated) await this.#operate(who, what, fault);
    } else if (this.setting.meddling) {
      if (this.#admin.alive) await this.#act(this.#admin, what, fault);
      else this.#admin = new Admin(this);
    }
  }

  /** Time by the clocks of the processes, which nobody sets. */
  get time(): number {
    return Date.now() + clockOffset() - this.#steppedMs;
  }

  #stepClock(what: number): void {
    const ms = CLOCK_STEPS_MS[what % CLOCK_STEPS_MS.length] as number;
    this.#steppedMs += ms;
    moveClock(ms);
    const holds = this.#workers.flatMap((worker) => [...worker.holds.values()]);
    if (ms > 0) for (const hold of holds) hold.doubtful = true;
    this.log.push(`the server's clock is set by ${ms}`);
  }

  async #operate(who: number, what: number, fault: number): Promise<void> {
    if (who === 13) {
      if (this.#operator.alive) await this.#act(this.#operator, what, fault);
      else this.#operator = new Operator(this);
      return;
    }
    // Mostly the first one, so that it comes to an end among what workers do.
    const i = who === 14 ? 1 : 0;
    const redriver = this.#redrivers[i] as Redriver;
    if (redriver.alive) await this.#act(redriver, what, fault);
    else this.#redrivers[i] = new Redriver(this);
  }

  async #act(actor: Actor, what: number, fault: number): Promise<void> {
    const deed = actor.next(what);
    if (!deed) return;
    const label = `${actor.constructor.name} ${deed.send.toString().slice(0, 60)} ${fault}`;
    this.log.push(label.replaceAll(/\s+/g, ' '));
    if (fault >= 93 && fault < 95) return actor.die();
    if (fault >= 97 && fault < 99) {
      this.#ghosts.push({ send: deed.send, at: this.#steps + 1 + (what % 40) });
      return actor.die();
    }
    let reply = await deed.send();
    if (fault >= 85 && fault < 89) reply = await deed.send();
    if (fault >= 89 && fault < 93) {
      this.#ghosts.push({ send: deed.send, at: this.#steps + 1 + (what % 40) });
    }
    if (fault >= 95 && fault < 97) actor.die();
    else deed.heard(reply as never);
    await this.check(label);
  }

  /** Reads everything back. @throws Error saying what must not be */
  async check(after: string): Promise<void> {
    const faults: string[] = [];
    for (const scene of this.scenes) {
      const picture = await peek(scene);
      faults.push(...faultsOf(picture).filter((fault) => fault !== ABOVE));
      faults.push(...faultsSince(this.pictures.get(scene.id), picture));
      this.pictures.set(scene.id, picture);
      if (ACTIVE.has(picture.status)) faults.push(...this.#running(scene, picture));
    }
    const queue = await this.peekQueue();
    faults.push(...queueFaultsOf(queue));
    if (faults.length > 0) this.fail(`after ${after}: ${faults.join('; ')}`, queue);
  }

  /** What the workers run, held against what they were granted. */
  #running(scene: Scene, picture: Picture): string[] {
    const faults: string[] = [];
    const owners = new Map(picture.pending.map(({ index, owner }) => [index, owner]));
    let all = 0;
    for (const worker of this.#workers) {
      // Of a life that was dropped nothing is known until the worker's next call.
      const runs = worker
        .valid(scene)
        .filter((entry) => entry.startsWith(`${picture.generation}-`))
        .map(indexOf);
      all += runs.length;
      const permits = picture.permits[worker.name] ?? 0;
      if (runs.length > permits) faults.push(`${runs.length} running under ${permits} permits`);
      for (const index of runs) {
        // Or else it was settled, by somebody who had lost it before.
        const owner = owners.get(index) ?? worker.name;
        if (owner !== worker.name) faults.push(`${index} is run by another than its owner`);
      }
    }
    // Above a lowered limit it may run until it has ended.
    if (all > Math.max(picture.limit, picture.granted))
      faults.push(`${all} running, limit ${picture.limit}`);
    return faults;
  }

  peekQueue() {
    const priorities = this.scenes.map((scene) => this.optionsOf(scene).priority as number);
    return peekQueue(this.scenes[0] as Scene, [...new Set([...priorities, ...PRIORITIES])]);
  }

  fail(what: string, queue: unknown): never {
    const pictures = Object.fromEntries(this.pictures);
    const state = JSON.stringify({ pictures, queue }, undefined, 1);
    throw new Error(`${what}\n${this.log.slice(-60).join('\n')}\n${state}`);
  }

  /** No more faults; what is alive does its work, time passes, and everything has to end. */
  async heal(): Promise<void> {
    this.healing = true;
    for (const submitter of this.#submitters) submitter.die();
    this.#admin.die();
    this.#operator.die();
    for (const redriver of this.#redrivers) redriver.die();
    await this.#resumeAll();
    if (!this.#workers.some(({ alive }) => alive)) this.#workers.push(new Worker(this));
    const from = clockOffset();
    for (let round = 0; round < 80; round += 1) {
      for (const ticker of this.#tickers) {
        do await this.#act(ticker, 0, 0);
        while (ticker.alive && !ticker.idle);
      }
      for (const worker of this.#workers) {
        for (let i = 0; worker.alive && i < 60; i += 1) {
          worker.fence();
          await this.#act(worker, i, 0);
          if (worker.idle) break;
        }
      }
      const { open } = await this.peekQueue();
      if (Object.keys(open).length === 0) {
        this.healedAfterMs = clockOffset() - from;
        return;
      }
      moveClock(2_500);
    }
    await this.check('heal');
    this.fail('not healed', await this.peekQueue());
  }

  /** Somebody sees that they are paused. */
  async #resumeAll(): Promise<void> {
    for (const { connection, id, queue } of this.scenes) {
      const control = new ControlCommands(connection, id);
      const life = await control.life();
      if (!life) continue;
      const { generation } = life;
      const resumed = await control.resume(generation);
      if (resumed.verdict !== 'ok') continue;
      if (resumed.mint > 0) await queue.push({ id, generation, ...resumed });
      await queue.note(id, generation, 0);
    }
  }

  /** Lets the ghosts arrive whose time has come; by default all. */
  async #haunt(until = Number.POSITIVE_INFINITY): Promise<void> {
    const due = this.#ghosts.filter(({ at }) => at <= until);
    this.#ghosts = this.#ghosts.filter(({ at }) => at > until);
    for (const { send } of due) {
      this.log.push(`ghost ${send}`.replaceAll(/\s+/g, ' ').slice(0, 70));
      await send();
      await this.check('ghost');
    }
  }

  /** Lets every ghost that is left arrive. */
  async ghosts(): Promise<void> {
    await this.#haunt();
  }

  /** What must be in the end. */
  async judge(): Promise<void> {
    const faults: string[] = [];
    for (const scene of this.scenes) {
      const picture = await peek(scene);
      this.pictures.set(scene.id, picture);
      if (['none', 'void', 'dropped'].includes(picture.status)) continue;
      const { counts, results, generation, fields } = picture;
      const redriven = fields['redriving'] !== undefined;
      if (redriven) this.redriven += 1;
      if (counts.total > this.setting.items) faults.push(`${counts.total} of so many items`);
      if (picture.status !== 'complete') faults.push(`${scene.id} is ${picture.status}`);
      const settled = counts.succeeded + counts.failed + counts.cancelled;
      const ends = this.ends;
      ends[picture.outcome] = (ends[picture.outcome] ?? 0) + 1;
      if (settled !== counts.total) faults.push(`settled ${settled} of ${counts.total}`);
      if (results.length + counts.cancelled !== counts.total) faults.push('results are missing');
      const early = /^(deadline|failures)$/.test(fields['endReason'] ?? '');
      if (early && picture.outcome !== 'failed') faults.push(`${fields['endReason']}, not failed`);
      if (picture.outcome !== 'cancelled' && !early && counts.cancelled > 0)
        faults.push('cancelled some');
      for (const { index, failed } of results) {
        // What an earlier life of it settled is kept.
        const life = (failed && picture.failed[`${index}:runs`]?.split(' ')[0]) || generation;
        const run = `${scene.id} ${life}-${index}`;
        const crashed = picture.failed[index]?.includes('CrashError') ?? false;
        if (crashed) {
          this.crashed += 1;
          const { maxCrashes } = this.setting;
          if (maxCrashes > 1 && !this.alone.has(run)) faults.push(`${index} was never alone`);
          continue;
        }
        const ranBefore = redriven && [...this.started].some((one) => ranAs(one, scene, index));
        if (!this.started.has(run) && !ranBefore) faults.push(`${index} was never run`);
        const times = this.failures.filter((failure) => failure === run).length;
        if (failed && times < this.setting.attempts) {
          faults.push(`${index} failed for good after ${times} attempts`);
        }
      }
    }
    const scene = this.scenes[0] as Scene;
    const { queue, connection } = scene;
    const tags = this.scenes.map(({ id }) => id);
    for (const key of await keysOf(connection.client, ...tags, queue.keys.queue)) {
      const ttl = await connection.client.pttl(key);
      const allowed = /^(request|failed|results):|:(counters|history)$/.test(key);
      if (!allowed || ttl < 0) faults.push(`${key} is left, TTL ${ttl}`);
    }
    if (faults.length > 0) this.fail(faults.join('; '), await this.peekQueue());
  }

  async remove(): Promise<void> {
    const { queue, connection } = this.scenes[0] as Scene;
    const tags = this.scenes.map(({ id }) => id);
    for (const key of await keysOf(connection.client, ...tags, queue.keys.queue)) {
      await connection.client.unlink(key);
    }
  }
}
