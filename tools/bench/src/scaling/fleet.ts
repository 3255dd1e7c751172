import FlatQueue from 'flatqueue';
import type { Setting } from './assumptions.js';
import { backgroundShare } from './background.js';
import { type Costs, enterMicros, fillMicros, settleMicros } from './costs.js';
import { Pace } from './pace.js';
import { seeded } from './random.js';

/** Calls that the simulated workers make. */
export type Called = 'settle' | 'should-yield' | 'pop' | 'enter' | 'push';

/** A server process: one call after another. */
interface Master {
  freeAt: number;
  busyMs: number;
  /** Factor by which calls are slower, as ticks and tends come in between. */
  readonly stretch: number;
}

/** A worker process: one thread. */
interface Process {
  freeAt: number;
}

/** What a worker process does with one request: slots, handlers, sub-requests at hand, outcomes to be settled. */
interface RequestSession {
  readonly worker: Process;
  readonly request: number;
  readonly permits: number;
  readonly pace: Pace;
  /** Of those permits that have a slot, since when it is empty, if it is. */
  empty: number[];
  running: number;
  /** How many were read and are not started. */
  ahead: number;
  outcomes: number;
  /** When the first of these outcomes came. */
  firstAt: number;
  /** A call is under way, or about to be sent. */
  busy: boolean;
  /** A settle is to be sent when the outcomes have waited long enough. */
  waits: boolean;
  turnStart: number;
  askAt: number;
  /** It gets each slot whose handler has ended. */
  successor: RequestSession | undefined;
  /** Whether its first sub-requests are here. */
  entered: boolean;
}

/**
 * Calls of `enter` and `push` each time that a session gets its turn. A token that is taken is minted again, and a
 * request that is entered without a free slot gives its tokens back. Counted in real runs (docs/scaling.md).
 */
const ENTERS = 2;
const PUSHES = 1;
/** A session gets so many slots when others wait, more if handlers are short (packages/worker/src/shared/slots.ts). */
const SHARED_SLOTS = 8;
const SHARED_SHORT_SLOTS = 25;
const SHORT_MS = 150;
/** Shorter than anything else: handlers that end at the same time end before their session gathers them. */
const ONE_TURN_MS = 1e-6;
/** Longest list of waits that is kept for the quantiles. */
const SAMPLES = 50_000;

/**
 * A discrete-event simulation of masters, worker processes and handlers, from measured costs. All
 * slots are full from the start and there is work without end. Times in ms.
 *
 * A handler ends → the next one starts, if there is a sub-request at hand → the outcome waits for others, as long as
 * there is something to start → the session settles and reads in one round trip. When its turn is over and others
 * wait, it pops and enters another request, which gets each slot whose handler has ended. The rules are those of
 * packages/worker/src/request, without failures; `Pace` has the numbers.
 */
export class Fleet {
  readonly #setting: Setting;
  readonly #costs: Costs;
  readonly #population: number;
  readonly #random: () => number;
  readonly #events = new FlatQueue<() => void>();
  readonly #masters: readonly Master[];
  readonly #queueMaster: Master;
  readonly #homes: readonly Master[];
  #now = 0;
  #settled = 0;
  #waits: number[] = [];
  #waitsSeen = 0;
  #waitSum = 0;
  #queueBusyMs = 0;
  #calls: Record<Called, number> = { settle: 0, 'should-yield': 0, pop: 0, enter: 0, push: 0 };
  #since = 0;

  /** `population`: how many of the workers are simulated; ticks and tends are those of all. */
  constructor(setting: Setting, costs: Costs, population: number) {
    this.#setting = setting;
    this.#population = population;
    this.#costs = costs;
    this.#random = seeded(setting.seed);
    const { masters, requests, placement, queueMaster = 0 } = setting;
    const homes = Array.from(
      { length: requests },
      (_, request) => placement?.[request] ?? Math.floor(this.#random() * masters),
    );
    this.#masters = Array.from({ length: masters }, (_, i) => {
      const held = homes.filter((home) => home === i).length;
      const share = backgroundShare(setting, costs, held, i === queueMaster);
      return { freeAt: 0, busyMs: 0, stretch: 1 / Math.max(0.01, 1 - share) };
    });
    this.#queueMaster = this.#masters[queueMaster] as Master;
    this.#homes = homes.map((home) => this.#masters[home] as Master);
    this.#fill();
  }

  get settled(): number {
    return this.#settled;
  }

  get now(): number {
    return this.#now;
  }

  /** Runs until `settled` more are settled and `forMs` has passed, or `events` events have happened. */
  run(settled: number, forMs: number, events: number): void {
    const until = this.#settled + settled;
    const end = this.#now + forMs;
    for (let i = 0; i < events; i += 1) {
      if (this.#settled >= until && this.#now >= end) return;
      this.#now = this.#events.peekValue() ?? this.#now;
      this.#events.pop()?.();
    }
  }

  /** Forgets what was counted so far, as when the start is over. */
  reset(): void {
    this.#settled = 0;
    this.#since = this.#now;
    this.#waits = [];
    this.#waitsSeen = 0;
    this.#waitSum = 0;
    this.#queueBusyMs = 0;
    this.#calls = { settle: 0, 'should-yield': 0, pop: 0, enter: 0, push: 0 };
    for (const master of this.#masters) master.busyMs = Math.max(0, master.freeAt - this.#now);
  }

  /** What was counted since the last reset. */
  counted() {
    const elapsedMs = this.#now - this.#since;
    // A call that lasts beyond the end counts as far as it came.
    const busy = ({ busyMs, freeAt, stretch }: Master) => {
      const doneMs = busyMs - Math.max(0, freeAt - this.#now);
      return Math.min(1, doneMs / elapsedMs + (1 - 1 / stretch) * (1 - doneMs / elapsedMs));
    };
    return {
      elapsedMs,
      settled: this.#settled,
      calls: this.#calls,
      busy: this.#masters.map(busy),
      queueBusy: this.#queueBusyMs / elapsedMs,
      queueMaster: this.#masters.indexOf(this.#queueMaster),
      waits: this.#waits,
      meanWaitMs: this.#waitSum / Math.max(1, this.#waitsSeen),
    };
  }

  /** All slots run, as after a long time: every handler is somewhere in its middle. */
  #fill(): void {
    const { concurrency, requests, contended, handlerMs } = this.#setting;
    const shared = handlerMs <= SHORT_MS ? SHARED_SHORT_SLOTS : SHARED_SLOTS;
    const most = contended ? Math.ceil(concurrency / shared) : concurrency;
    const parts = Math.min(most, requests);
    for (let i = 0; i < this.#population; i += 1) {
      const worker: Process = { freeAt: 0 };
      for (let part = 0; part < parts; part += 1) {
        const permits =
          Math.floor(((part + 1) * concurrency) / parts) - Math.floor((part * concurrency) / parts);
        // In turn, as limits share the slots out; by chance where tokens decide.
        const request = contended ? this.#anyRequest() : (i * parts + part) % requests;
        const session = this.#session(worker, request, permits);
        session.entered = true;
        session.ahead = session.pace.ahead;
        this.#beginTurn(session, this.#random());
        for (let n = 0; n < permits; n += 1) {
          this.#start(session, this.#random() * this.#handlerMs() + this.#random());
        }
      }
    }
  }

  #at(time: number, action: () => void): void {
    this.#events.push(action, time);
  }

  #anyRequest(): number {
    return Math.floor(this.#random() * this.#setting.requests);
  }

  #handlerMs(): number {
    return this.#setting.handlerMs * (0.5 + this.#random());
  }

  #session(worker: Process, request: number, permits: number): RequestSession {
    const pace = new Pace(this.#setting, permits);
    return {
      ...{ worker, request, permits, pace, empty: [], running: 0, ahead: 0, outcomes: 0 },
      ...{ firstAt: 0, busy: false, waits: false, turnStart: 0, askAt: 0 },
      ...{ successor: undefined, entered: false },
    };
  }

  /** `passed`: the part of the turn that has passed. */
  #beginTurn(session: RequestSession, passed = 0): void {
    session.turnStart = this.#now - passed * session.pace.turnMs;
    session.askAt = this.#now + (1 - passed) * session.pace.questionMs;
  }

  #start(session: RequestSession, forMs: number): void {
    session.running += 1;
    const { timerMs } = this.#setting;
    const end = this.#now + forMs;
    const at = timerMs ? Math.ceil(end / timerMs) * timerMs : end;
    this.#at(at, () => this.#end(session));
  }

  #end(session: RequestSession): void {
    session.running -= 1;
    if (session.outcomes === 0) session.firstAt = this.#now;
    session.outcomes += 1;
    if (session.ahead === 0 && session.successor) this.#useSlot(session.successor, this.#now);
    else this.#useSlot(session, this.#now);
    this.#kick(session);
  }

  /** A slot is empty since then: starts what is at hand in it, or keeps it. */
  #useSlot(session: RequestSession, since: number): void {
    if (session.ahead === 0) {
      session.empty.push(since);
      if (session.entered) this.#kick(session);
      return;
    }
    session.ahead -= 1;
    this.#waited(since);
    this.#start(session, this.#setting.handlerMs > 0 ? this.#handlerMs() : 0);
  }

  #kick(session: RequestSession): void {
    if (session.busy || !session.entered) return;
    const dueMs = this.#dueInMs(session);
    if (dueMs === undefined) return;
    if (dueMs > 0) {
      if (session.waits) return;
      session.waits = true;
      this.#at(this.#now + dueMs, () => {
        session.waits = false;
        this.#kick(session);
      });
      return;
    }
    session.busy = true;
    // Whatever ends until the thread gets to it, or in the same moment, is gathered.
    this.#at(Math.max(this.#now, session.worker.freeAt) + ONE_TURN_MS, () => this.#work(session));
  }

  /** In how many ms it has to settle or to read; undefined: there is nothing to do. */
  #dueInMs({ successor, running, ahead, empty, outcomes, firstAt, pace }: RequestSession) {
    if (!successor && empty.length > 0) return 0;
    if (outcomes === 0) return undefined;
    const mayWait = successor ? running > 0 : ahead > pace.duringCall;
    return mayWait ? Math.max(0, firstAt + pace.delayMs - this.#now) : 0;
  }

  #work(session: RequestSession): void {
    if (session.successor || this.#now < session.askAt) {
      this.#settle(session);
      return;
    }
    const { 'should-yield': asked } = this.#costs.server;
    this.#call('should-yield', session.worker, this.#queueMaster, asked.micros, () => {
      const { contended, requests } = this.#setting;
      const endsAt = session.turnStart + session.pace.turnMs;
      session.askAt = this.#now + session.pace.questionMs;
      const others = contended && requests > 1;
      if (others && this.#now >= endsAt) this.#handOver(session);
      // Whoever knows that others wait asks no more before its turn ends.
      else if (others) session.askAt = Math.max(this.#now, endsAt);
      this.#settle(session);
    });
  }

  #settle(session: RequestSession): void {
    const { worker, request, outcomes, pace, successor, empty, ahead } = session;
    const read = successor ? 0 : empty.length + Math.max(0, pace.ahead - ahead);
    session.outcomes = 0;
    const filling = outcomes * fillMicros(this.#costs);
    const micros = settleMicros(this.#costs, outcomes, read) + filling;
    const home = this.#homes[request] as Master;
    const clientMicros = outcomes * this.#costs.client.perOutcomeMicros;
    const then = () => {
      this.#settled += outcomes;
      session.busy = false;
      session.ahead += read;
      const slots = session.empty.splice(0);
      for (const since of slots) this.#useSlot(session.successor ?? session, since);
      this.#kick(session);
    };
    this.#call('settle', worker, home, micros, then, clientMicros);
  }

  /** Another request is popped and entered, which gets the slots. */
  #handOver(session: RequestSession): void {
    const { worker, permits } = session;
    const next = this.#session(worker, this.#anyRequest(), permits);
    session.successor = next;
    const { popAtHand, push } = this.#costs.server;
    const home = this.#homes[next.request] as Master;
    this.#call('pop', worker, this.#queueMaster, popAtHand.micros, () => {
      for (let i = 1; i < ENTERS; i += 1)
        this.#call('enter', worker, home, this.#costs.server.enter.micros, () => {});
      for (let i = 0; i < PUSHES; i += 1)
        this.#call('push', worker, this.#queueMaster, push.micros, () => {});
      this.#call('enter', worker, home, enterMicros(this.#costs, permits), () => {
        next.entered = true;
        next.ahead = permits;
        this.#beginTurn(next);
        for (const since of next.empty.splice(0)) this.#useSlot(next, since);
        this.#kick(next);
      });
    });
  }

  /** A call goes out when the worker's thread is free, and is carried out when the master's is. */
  #call(
    what: Called,
    worker: Process,
    master: Master,
    micros: number,
    then: () => void,
    clientMicros = 0,
  ): void {
    const { roundTripMs } = this.#setting;
    const ownMs = (this.#costs.client.perTurnMicros + clientMicros) / 1_000;
    worker.freeAt = Math.max(this.#now, worker.freeAt) + ownMs;
    this.#calls[what] += 1;
    this.#at(worker.freeAt + roundTripMs / 2, () => {
      const tookMs = (micros / 1_000) * master.stretch;
      master.freeAt = Math.max(this.#now, master.freeAt) + tookMs;
      master.busyMs += tookMs;
      if (what === 'should-yield' || what === 'pop' || what === 'push') this.#queueBusyMs += tookMs;
      this.#at(master.freeAt + roundTripMs / 2, then);
    });
  }

  /** How long a slot stood empty; of many, a sample. */
  #waited(since: number): void {
    const wait = this.#now - since;
    this.#waitSum += wait;
    this.#waitsSeen += 1;
    if (this.#waits.length < SAMPLES) this.#waits.push(wait);
    else this.#waits[Math.floor(this.#random() * SAMPLES)] = wait;
  }
}
