import type { Crew, Member, RoleName } from './crew.js';
import type { Report, Task } from './messages.js';
import { type Plan, planOf } from './plan.js';

/*
 * Keeps the list of what is to be done and asks the processes for it. The desk is never killed: who
 * takes over from a killed process is asked for all that its place has not reported done.
 */

type Stage = 'producing' | 'awaited' | 'inspecting' | 'dropping';

interface Order {
  readonly plan: Plan;
  stage: Stage;
  sealed: boolean;
  /** Places of waiters that have not read it yet; asked: those that have been told. */
  readonly reading: Set<number>;
  readonly asked: Set<number>;
}

export interface DeskEvents {
  /** All its waiters have read it: look at it, then let it be dropped by resolving. */
  readonly onRead: (plan: Plan) => Promise<void>;
  readonly onGaveUp: (by: string, id: string, code: string) => void;
}

/** So many submissions under way at each producer. */
const PER_PRODUCER = 4;

export class Desk {
  readonly #crew: Crew;
  readonly #seed: number;
  readonly #producers: number;
  readonly #events: DeskEvents;
  readonly #orders = new Map<string, Order>();
  #number = 0;
  #items = 0;

  constructor(crew: Crew, options: { seed: number; producers: number }, events: DeskEvents) {
    this.#crew = crew;
    this.#seed = options.seed;
    this.#producers = options.producers;
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
    const plan = planOf(this.#seed, this.#number);
    const place = this.#producerOf(plan);
    const busy = [...this.#orders.values()].filter(
      ({ stage, sealed, plan: other }) =>
        stage !== 'dropping' && !sealed && this.#producerOf(other) === place,
    );
    if (busy.length >= PER_PRODUCER) return false;
    this.#number += 1;
    this.#items += plan.size;
    const reading = new Set(plan.waiters);
    const order: Order = { plan, stage: 'producing', sealed: false, reading, asked: new Set() };
    this.#orders.set(plan.id, order);
    this.#crew.ask('producer', place, { task: 'produce', plan });
    return true;
  }

  /** Listens to the crew. */
  hear(member: Member, report: Report): void {
    if (report.report === 'ready') {
      this.#askAgain(member.place.role, member.place.number);
      return;
    }
    const order = this.#orders.get(report.id);
    if (!order) return;
    const { number } = member.place;
    if (report.report === 'opened') this.#askWaiter(order, 0);
    else if (report.report === 'sealed') this.#sealed(order);
    else if (report.report === 'read') this.#read(order, number);
    else if (report.report === 'dropped') this.#orders.delete(report.id);
    else {
      this.#events.onGaveUp(member.name, report.id, report.code);
      if (member.place.role === 'waiter') this.#read(order, number);
      else if (order.stage === 'dropping') this.#orders.delete(report.id);
      else this.#sealed(order);
    }
  }

  #sealed(order: Order): void {
    order.sealed = true;
    this.#askWaiter(order, 0);
    setTimeout(() => this.#askWaiter(order, 1), order.plan.lateMs);
    // Waiters may know of the seal before the desk does.
    this.#endIfRead(order);
  }

  #askWaiter(order: Order, nth: number): void {
    const place = order.plan.waiters[nth];
    if (place === undefined || order.asked.has(place)) return;
    if (order.stage === 'producing') order.stage = 'awaited';
    order.asked.add(place);
    this.#crew.ask('waiter', place, { task: 'await', plan: order.plan });
  }

  #read(order: Order, place: number): void {
    order.reading.delete(place);
    this.#endIfRead(order);
  }

  #endIfRead(order: Order): void {
    if (order.reading.size > 0 || !order.sealed || order.stage !== 'awaited') return;
    order.stage = 'inspecting';
    void this.#events.onRead(order.plan).then(() => {
      order.stage = 'dropping';
      this.#crew.ask('producer', this.#producerOf(order.plan), { task: 'drop', plan: order.plan });
    });
  }

  #producerOf({ number }: Plan): number {
    return number % this.#producers;
  }

  #askAgain(role: RoleName, place: number): void {
    for (const order of this.#orders.values()) {
      for (const task of tasksOf(order, role)) {
        const mine =
          role === 'waiter'
            ? order.reading.has(place) && order.asked.has(place)
            : this.#producerOf(order.plan) === place;
        if (mine) this.#crew.ask(role, place, { task, plan: order.plan });
      }
    }
  }
}

function tasksOf({ stage, sealed }: Order, role: RoleName): Task['task'][] {
  if (role === 'waiter') return stage === 'awaited' ? ['await'] : [];
  if (role === 'worker') return [];
  if (stage === 'dropping') return ['drop'];
  return sealed ? [] : ['produce'];
}
