import { setTimeout as sleep } from 'node:timers/promises';
import type { Crew, Member, RoleName } from '../attacked/crew.js';
import type { LostWrites } from '../attacked/server.js';
import type { Report } from '../contract/messages.js';
import { type Plan, planOf, type Step } from '../contract/plan.js';

/*
 * Keeps the list of work and gives it to the processes. The desk is never killed. When a process was killed, its
 * successor gets all work that its place has not reported as done. When the server has lost writes, the desk asks once
 * more for everything that was acknowledged in that time, as a user has to. It does not ask again for what was
 * acknowledged after the loss: those writes must not be lost.
 */

type Stage = 'producing' | 'awaited' | 'inspecting' | 'redriving' | 'dropping';

interface Order {
  readonly plan: Plan;
  stage: Stage;
  sealed: boolean;
  /** Places of waiters that have not read it yet; `asked`: those that were asked to. */
  readonly reading: Set<number>;
  readonly asked: Set<number>;
  /** Its next control step, and whether a process was asked to take it. */
  step: number;
  asking: 'no' | 'soon' | 'asked';
  /** Whether its control steps have begun. */
  meddled: boolean;
  /** The generation whose completion is awaited, or a later one; 0: any. */
  generation: number;
  /** When its seal was acknowledged, and each of its steps. */
  sealedAt: Acknowledged | undefined;
  readonly stepsAt: Acknowledged[];
  /** How often a process gave it up and was asked again. */
  givenUp: number;
}

/** From the sending of the call until the report arrived at the desk. */
interface Acknowledged {
  readonly sinceNs: bigint;
  readonly heardNs: bigint;
}

export interface DeskEvents {
  /** All its waiters have read it. When this resolves, it is dropped. */
  readonly onRead: (plan: Plan) => Promise<void>;
  readonly onGaveUp: (by: string, id: string, code: string) => void;
}

export interface DeskOptions {
  readonly seed: number;
  readonly producers: number;
  /** Largest size of a request. Smaller ones come more evenly. */
  readonly mostItems: number;
}

function acknowledged(sinceNs: string): Acknowledged {
  return { sinceNs: BigInt(sinceNs), heardNs: process.hrtime.bigint() };
}

/**
 * How often a task is repeated that a loss of writes may have spoilt. On a busy machine a producer that is killed twice
 * takes half a minute to submit once more.
 */
const TRIES = 60;
const AGAIN_MS = 500;
const GONE = ['NOT_FOUND', 'LOST', 'EXPIRED', 'DROPPED'];
/** For this many dropped requests the desk remembers when they were dropped. */
const DROPPED_KEPT = 1_000;
/** Each producer has at most this many submissions under way. */
const PER_PRODUCER = 4;

export class Desk {
  readonly #crew: Crew;
  readonly #seed: number;
  readonly #producers: number;
  readonly #mostItems: number;
  readonly #events: DeskEvents;
  readonly #orders = new Map<string, Order>();
  readonly #losses: LostWrites[] = [];
  readonly #dropped = new Map<string, { readonly plan: Plan; readonly at: Acknowledged }>();
  #number = 0;
  #items = 0;

  constructor(crew: Crew, options: DeskOptions, events: DeskEvents) {
    this.#crew = crew;
    this.#seed = options.seed;
    this.#producers = options.producers;
    this.#mostItems = options.mostItems;
    this.#events = events;
  }

  /** Requests that are not dropped yet. */
  get open(): readonly { readonly id: string; readonly stage: Stage }[] {
    return [...this.#orders].map(([id, { stage }]) => ({ id, stage }));
  }

  /** How many items were ordered so far. */
  get items(): number {
    return this.#items;
  }

  /** Orders one more request; false when every producer has enough to do. */
  order(): boolean {
    const planned = planOf(this.#seed, this.#number);
    const plan = { ...planned, size: Math.min(planned.size, this.#mostItems) };
    const place = this.#producerOf(plan);
    const busy = [...this.#orders.values()].filter(
      ({ stage, sealed, plan: other }) =>
        stage !== 'dropping' && !sealed && this.#producerOf(other) === place,
    );
    if (busy.length >= PER_PRODUCER) return false;
    this.#number += 1;
    this.#items += plan.size;
    const reading = new Set(plan.waiters);
    const order: Order = {
      ...{ plan, stage: 'producing', sealed: false, reading, asked: new Set() },
      ...{ step: 0, asking: 'no', meddled: false, generation: 0 },
      ...{ sealedAt: undefined, stepsAt: [], givenUp: 0 },
    };
    this.#orders.set(plan.id, order);
    this.#crew.ask('producer', place, { task: 'produce', plan });
    return true;
  }

  /** Takes a report of a process. */
  hear(member: Member, report: Report): void {
    if (report.report === 'ready') {
      this.#askAgain(member.place.role, member.place.number);
      return;
    }
    const order = this.#orders.get(report.id);
    if (!order) return;
    const { number } = member.place;
    if (report.report === 'opened') {
      this.#askWaiter(order, 0);
      this.#meddle(order);
    } else if (report.report === 'controlled') {
      if (report.step !== order.step) return;
      const at = acknowledged(report.sinceNs);
      if (this.#isLost(at)) this.#askStep(order);
      else {
        order.stepsAt[report.step] = at;
        this.#controlled(order, report.generation);
      }
    } else if (report.report === 'sealed') {
      order.sealedAt = acknowledged(report.sinceNs);
      if (this.#isLost(order.sealedAt)) this.#askToProduce(order);
      else this.#sealed(order);
    } else if (report.report === 'read') this.#read(order, number);
    else if (report.report === 'dropped') {
      const at = acknowledged(report.sinceNs);
      if (this.#isLost(at)) {
        this.#askToDrop(order);
        return;
      }
      this.#dropped.set(report.id, { plan: order.plan, at });
      if (this.#dropped.size > DROPPED_KEPT)
        this.#dropped.delete(this.#dropped.keys().next().value ?? '');
      this.#orders.delete(report.id);
    } else {
      if (this.#losses.length > 0 && order.givenUp < TRIES)
        this.#askOnceMore(order, member, report.code);
      else this.#gaveUp(order, member, report.code);
    }
  }

  #gaveUp(order: Order, { name, place }: Member, code: string): void {
    const { id } = order.plan;
    this.#events.onGaveUp(name, id, code);
    const by = this.#stepOf(order);
    if (order.asking === 'asked' && by?.role === place.role && by.place === place.number)
      this.#controlled(order, 0);
    if (place.role === 'waiter') this.#read(order, place.number);
    else if (order.stage === 'dropping') this.#orders.delete(id);
    else this.#sealed(order);
  }

  /**
   * The server has lost writes: asks again for everything that was acknowledged in that time. Reports that arrive later
   * are checked when they arrive.
   */
  lost(lost: LostWrites): void {
    this.#losses.push(lost);
    for (const [id, { plan, at }] of this.#dropped) {
      if (!this.#isLost(at)) continue;
      this.#dropped.delete(id);
      const order: Order = {
        ...{ plan, stage: 'dropping', sealed: true, reading: new Set(), asked: new Set() },
        ...{ step: plan.steps.length, asking: 'no', meddled: true, generation: 0 },
        ...{ sealedAt: undefined, stepsAt: [], givenUp: 0 },
      };
      this.#orders.set(id, order);
      this.#askToDrop(order);
    }
    for (const order of this.#orders.values()) {
      const { plan, stage, stepsAt, sealed, sealedAt } = order;
      if (stage === 'dropping') continue;
      if (sealed && sealedAt && this.#isLost(sealedAt)) this.#askToProduce(order);
      const first = stepsAt.findIndex((at) => at && this.#isLost(at));
      const act = plan.steps[first]?.act;
      if (act && !(act === 'redrive' && stage === 'inspecting')) {
        stepsAt.length = first;
        order.step = first;
        order.asking = 'no';
        if (act === 'redrive') order.stage = 'redriving';
        this.#nextStep(order);
      }
    }
  }

  /** Whether the server, or its predecessor, may have acknowledged it and lost it since. */
  #isLost({ sinceNs, heardNs }: Acknowledged): boolean {
    return this.#losses.some(({ sureNs, goneNs }) => sinceNs < goneNs && heardNs > sureNs);
  }

  #askToProduce(order: Order): void {
    const { plan } = order;
    // A request that was dropped on purpose must not be submitted again.
    const ends = plan.steps.slice(0, order.step).some(({ act }) => act === 'drop');
    order.sealed = ends;
    if (ends) this.#sealed(order);
    else this.#crew.ask('producer', this.#producerOf(plan), { task: 'produce', plan });
  }

  #askToDrop({ plan }: Order): void {
    this.#crew.ask('producer', this.#producerOf(plan), { task: 'drop', plan });
  }

  /** A process found it gone, or wrong: it is submitted again, and what was asked is asked again. */
  #askOnceMore(order: Order, { place }: Member, code: string): void {
    order.givenUp += 1;
    const { stage, plan } = order;
    const isGone = GONE.includes(code);
    if (isGone) order.generation = 0;
    void sleep(AGAIN_MS).then(() => {
      if (this.#orders.get(plan.id) !== order) return;
      if (place.role === 'producer' && stage === 'dropping') return this.#askToDrop(order);
      if (order.asking === 'asked' && this.#stepOf(order)?.role === place.role)
        this.#askStep(order);
      if (order.stage === 'dropping' || order.stage === 'inspecting') return;
      if (place.role === 'waiter' && order.reading.has(place.number))
        this.#crew.ask('waiter', place.number, { task: 'await', plan, after: order.generation });
      if (isGone || !order.sealed) this.#askToProduce(order);
    });
  }

  #sealed(order: Order): void {
    order.sealed = true;
    this.#askWaiters(order);
    if (order.meddled) this.#nextStep(order);
    else this.#meddle(order);
    // Waiters may have read it before the desk knows of the seal.
    this.#endIfRead(order);
  }

  #askWaiters(order: Order): void {
    this.#askWaiter(order, 0);
    setTimeout(() => this.#askWaiter(order, 1), order.plan.lateMs);
  }

  /** Starts its control steps as soon as it exists; once. */
  #meddle(order: Order): void {
    if (order.meddled) return;
    order.meddled = true;
    this.#nextStep(order);
  }

  #stepOf({ plan, step }: Order): Step | undefined {
    return plan.steps[step];
  }

  /** Asks for the next step when its time has come. A redrive waits until all have read. */
  #nextStep(order: Order): void {
    const step = this.#stepOf(order);
    if (!step || order.asking !== 'no') return;
    const { act } = step;
    if (act === 'redrive' && order.stage !== 'redriving') return;
    // After it is gone, a producer that still adds to it would create it again.
    if ((act === 'cancel' || act === 'drop') && !order.sealed) return;
    order.asking = 'soon';
    setTimeout(() => {
      order.asking = 'asked';
      this.#askStep(order);
    }, step.afterMs);
  }

  #askStep(order: Order): void {
    const step = this.#stepOf(order);
    if (!step) return;
    const { plan, step: number } = order;
    this.#crew.ask(step.role, step.place, { task: 'control', plan, step: number });
  }

  #controlled(order: Order, generation: number): void {
    if (order.stage === 'dropping') return;
    const step = this.#stepOf(order);
    order.step += 1;
    order.asking = 'no';
    if (step?.act === 'redrive') {
      order.generation = generation;
      order.stage = 'awaited';
      for (const place of order.plan.waiters) order.reading.add(place);
      order.asked.clear();
      this.#askWaiters(order);
    }
    this.#nextStep(order);
    this.#endIfRead(order);
  }

  #askWaiter(order: Order, nth: number): void {
    const place = order.plan.waiters[nth];
    if (place === undefined || order.asked.has(place)) return;
    if (order.stage === 'producing') order.stage = 'awaited';
    order.asked.add(place);
    this.#crew.ask('waiter', place, { task: 'await', plan: order.plan, after: order.generation });
  }

  #read(order: Order, place: number): void {
    order.reading.delete(place);
    this.#endIfRead(order);
  }

  #endIfRead(order: Order): void {
    if (order.reading.size > 0 || !order.sealed || order.stage !== 'awaited') return;
    const next = this.#stepOf(order);
    if (next && next.act !== 'redrive') return;
    order.stage = 'inspecting';
    void this.#events.onRead(order.plan).then(() => {
      if (next) {
        order.stage = 'redriving';
        this.#nextStep(order);
        return;
      }
      order.stage = 'dropping';
      this.#askToDrop(order);
    });
  }

  #producerOf({ number }: Plan): number {
    return number % this.#producers;
  }

  #askAgain(role: RoleName, place: number): void {
    for (const order of this.#orders.values()) {
      const { plan, stage, sealed, reading, asked, generation } = order;
      const step = this.#stepOf(order);
      if (order.asking === 'asked' && step?.role === role && step.place === place)
        this.#askStep(order);
      if (role === 'waiter') {
        if (stage === 'awaited' && reading.has(place) && asked.has(place))
          this.#crew.ask(role, place, { task: 'await', plan, after: generation });
      } else if (role === 'producer' && this.#producerOf(plan) === place) {
        if (stage === 'dropping') this.#askToDrop(order);
        else if (!sealed) this.#crew.ask(role, place, { task: 'produce', plan });
      }
    }
  }
}
