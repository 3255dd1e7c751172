import FlatQueue from 'flatqueue';
import type { Setting } from './assumptions.js';
import { backgroundShare } from './background.js';
import { type Costs, fillMicros, settleMicros } from './costs.js';
import { seeded } from './random.js';

/** Calls that the simulated workers make. */
export type Called = 'settle' | 'contended' | 'swap' | 'enter' | 'push';

/** A server process: one call after another. */
interface Master {
  freeAt: number;
  busyMs: number;
  /** Every call takes so many times as long, as looks at the agenda come in between. */
  readonly stretch: number;
}

/** A worker process: one thread. */
interface Process {
  freeAt: number;
}

/** What a worker process has to do with one request: permits, handlers, outcomes to be settled. */
interface RequestSession {
  readonly worker: Process;
  readonly request: number;
  permits: number;
  running: number;
  /** When each handler ended that is not settled yet. */
  ended: number[];
  /** A call is under way, or about to be sent. */
  busy: boolean;
  leaving: boolean;
  sliceStart: number;
}

/**
 * Every token that is taken is minted again: by an enter, which pushes it, or by the settle before a
 * swap, which carries it along. Counted in real runs (docs/scaling.md), not derived.
 */
const PUSHES_PER_ENTER = 0.65;
/** Shorter than anything else: what ends at the same time ends before its session looks. */
const ONE_TURN_MS = 1e-6;
/** Longest list of waits that is kept for the quantiles. */
const SAMPLES = 50_000;

/**
 * A discrete-event simulation of masters, worker processes and handlers, from measured costs. All
 * slots are full from the start and there is work without end. Times in ms.
 *
 * A handler ends → its session gathers what ended, asks whether to stay when its slice is over,
 * settles and reads in one round trip → the next handlers start. An session that has to leave
 * settles, swaps its tokens for others, and enters those requests. The rules are those of
 * packages/worker/src/request/request-session.ts, without failures.
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
  #calls: Record<Called, number> = { settle: 0, contended: 0, swap: 0, enter: 0, push: 0 };
  #since = 0;

  /** `population`: how many of the workers are simulated; looks at the agenda are those of all. */
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

  /** Goes on until so many more are settled and so much time has passed, or `events` have happened. */
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
    this.#calls = { settle: 0, contended: 0, swap: 0, enter: 0, push: 0 };
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
    const { concurrency, requests, quantumMs, contended } = this.#setting;
    const parts = Math.min(concurrency, requests);
    for (let i = 0; i < this.#population; i += 1) {
      const worker: Process = { freeAt: 0 };
      for (let part = 0; part < parts; part += 1) {
        const permits =
          Math.floor(((part + 1) * concurrency) / parts) - Math.floor((part * concurrency) / parts);
        const sliceStart = -this.#random() * quantumMs;
        // In turn, as limits share the slots out; by chance where tokens decide.
        const request = contended ? this.#anyRequest() : (i * parts + part) % requests;
        const session = engage(worker, request, permits, sliceStart);
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

  #start(session: RequestSession, forMs: number): void {
    session.running += 1;
    const { timerMs } = this.#setting;
    const end = this.#now + forMs;
    const at = timerMs ? Math.ceil(end / timerMs) * timerMs : end;
    this.#at(at, () => this.#end(session));
  }

  #end(session: RequestSession): void {
    session.running -= 1;
    session.ended.push(this.#now);
    this.#kick(session);
  }

  #kick(session: RequestSession): void {
    if (session.busy) return;
    session.busy = true;
    // Whatever ends until the thread gets to it, or in the same moment, is gathered.
    this.#at(Math.max(this.#now, session.worker.freeAt) + ONE_TURN_MS, () => this.#pump(session));
  }

  #pump(session: RequestSession): void {
    const { quantumMs, contended } = this.#setting;
    const age = this.#now - session.sliceStart;
    if (session.leaving || age < quantumMs) {
      this.#settle(session);
      return;
    }
    const { contended: asked } = this.#costs.server;
    this.#call('contended', session.worker, this.#queueMaster, asked.micros, () => {
      session.sliceStart = this.#now;
      session.leaving = contended && this.#setting.requests > 1;
      this.#settle(session);
    });
  }

  #settle(session: RequestSession): void {
    const { worker, request, running, ended } = session;
    const read = session.leaving ? 0 : session.permits - running;
    session.ended = [];
    const filling = ended.length * fillMicros(this.#costs);
    const micros = settleMicros(this.#costs, ended.length, read) + filling;
    const home = this.#homes[request] as Master;
    const clientMicros = ended.length * this.#costs.client.perOutcomeMicros;
    const then = () => this.#settledBy(session, read, running, ended);
    this.#call('settle', worker, home, micros, then, clientMicros);
  }

  #settledBy(session: RequestSession, read: number, running: number, ended: number[]): void {
    this.#settled += ended.length;
    session.busy = false;
    if (session.leaving) {
      const freed = session.permits - running;
      session.permits = running;
      this.#swap(session, freed, ended);
    } else {
      this.#waited(ended);
      this.#startNew(session, read);
    }
    if (session.ended.length > 0) this.#kick(session);
  }

  #startNew(session: RequestSession, count: number): void {
    for (let i = 0; i < count; i += 1) {
      if (this.#setting.handlerMs > 0) this.#start(session, this.#handlerMs());
      else session.ended.push(this.#now);
    }
    if (session.ended.length > 0) this.#kick(session);
  }

  /** Tokens of other requests for those that it left; each of them is entered, and minted anew. */
  #swap({ worker }: RequestSession, freed: number, ended: readonly number[]): void {
    if (freed === 0) return;
    const { swap, enter, push } = this.#costs.server;
    this.#call('swap', worker, this.#queueMaster, swap.micros, () => {
      for (let i = 0; i < freed; i += 1) {
        const next = engage(worker, this.#anyRequest(), 1, this.#now);
        const home = this.#homes[next.request] as Master;
        next.busy = true;
        this.#call('enter', worker, home, enter.micros, () => {
          next.sliceStart = this.#now;
          if (this.#random() < PUSHES_PER_ENTER)
            this.#call('push', worker, this.#queueMaster, push.micros, () => {});
          this.#firstRead(next, ended[i]);
        });
      }
    });
  }

  #firstRead(session: RequestSession, freeSince: number | undefined): void {
    const { worker, request } = session;
    const home = this.#homes[request] as Master;
    this.#call('settle', worker, home, settleMicros(this.#costs, 0, 1), () => {
      session.busy = false;
      if (freeSince !== undefined) this.#waited([freeSince]);
      this.#startNew(session, 1);
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
      if (what === 'contended' || what === 'swap' || what === 'push') this.#queueBusyMs += tookMs;
      this.#at(master.freeAt + roundTripMs / 2, then);
    });
  }

  /** How long slots stood empty; of many, a sample. */
  #waited(since: readonly number[]): void {
    for (const time of since) {
      const wait = this.#now - time;
      this.#waitSum += wait;
      this.#waitsSeen += 1;
      if (this.#waits.length < SAMPLES) this.#waits.push(wait);
      else this.#waits[Math.floor(this.#random() * SAMPLES)] = wait;
    }
  }
}

const engage = (
  worker: Process,
  request: number,
  permits: number,
  sliceStart: number,
): RequestSession => ({
  ...{ worker, request, permits, sliceStart, running: 0, ended: [] },
  ...{ busy: false, leaving: false },
});
