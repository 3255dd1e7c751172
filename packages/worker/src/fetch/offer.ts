import {
  type Granted,
  type NextOffer,
  nextTurn,
  type Offering,
  offerChannel,
  pause,
  type QueueCommands,
} from '@piecework/protocol';
import { aheadIn, mostAtEnter, quickIn } from '../shared/read-at-enter.js';
import type { Slots } from '../shared/slots.js';
import type { WorkerContext } from '../shared/worker-context.js';

/** How often it is checked whether to offer, and after how long an offer is made anew, in ms: the server keeps it for 6 s. */
const CHECK_MS = 1_000;
const RENEW_MS = 4_000;
/** For so long the message about a request may be under way when the server says that it was entered, in ms. */
const ON_ITS_WAY_MS = 20;
/** After a message that got lost, no offer is made for so long, in ms: a dead connection is noticed within that time. */
const MISSED_MS = 30_000;
/** After a handler that blocked the event loop, no offer is made for so long, in ms. */
const BLOCKED_MS = 600_000;
/** About so many idle workers of a fleet offer: the next request needs one. */
const OFFERING = 50;

interface Hooks {
  /** Whether the worker waits for tokens, so that no list has any, and would receive what is entered by an offer. */
  readonly isWaiting: () => boolean;
  /** How many requests the worker works on. */
  readonly sessions: () => number;
  /** How many workers the queue has. */
  readonly fleet: () => number;
  /** A request was entered by an offer of this number, and no message came. */
  readonly onMissed: (id: string, generation: number, op: number) => void;
}

/**
 * The offer of an idle worker to enter the next small request (docs/protocol.md, "Offers"). At most one stands. `submit`
 * enters the request for the worker and sends it what an enter would have answered, which takes one round trip less than
 * a token. What is sent may get lost: the next call of `offer` answers which request it was.
 */
export class Offer implements Offering {
  readonly #context: WorkerContext;
  readonly #queue: QueueCommands;
  readonly #slots: Slots;
  readonly #hooks: Hooks;
  /** Number of the offer that may stand; 0: none. */
  #op = 0;
  /** When it was made, as performance.now(), as all times here. */
  #madeAt = 0;
  /** What was entered last, as 'op id~generation'. */
  #known = '';
  /** Whether the server has a note of that which this worker has not acknowledged. */
  #isNoted = false;
  /** The server's time `now` was read after `sentAt`. */
  #clock: { readonly sentAt: number; readonly now: number } | undefined;
  /** The call under way; undefined: none. */
  #call: Promise<void> | undefined;
  /** Whether the offer is to be taken back when that call is answered. */
  #isUnwanted = false;
  #silentUntil = 0;
  /** Whether it is among those that offer, where the fleet is big, and when that was drawn. */
  #isDrawn = false;
  #drawnAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  constructor(context: WorkerContext, queue: QueueCommands, slots: Slots, hooks: Hooks) {
    this.#context = context;
    this.#queue = queue;
    this.#slots = slots;
    this.#hooks = hooks;
  }

  /** Whether an offer stands, as far as is known: the worker is idle. */
  get stands(): boolean {
    return this.#op > 0;
  }

  /** Where one server has all keys, and no other queue has a turn at the same slots. A frugal worker offers nothing. */
  get isPossible(): boolean {
    const { connection, idleFactor } = this.#context;
    return connection.isOneServer && !this.#slots.shared && idleFactor === 1;
  }

  start(): void {
    this.#timer ??= setInterval(() => void this.check(), CHECK_MS).unref();
  }

  /** Offers nothing any more; what was entered meanwhile is known then. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.withdraw();
    // cure: a worker that closes learns what was entered
    while (this.#call) await this.#call;
    const { queue } = this.#queue.keys;
    // cure: a worker that closes asks until it is answered
    if (this.#op > 0) await this.#context.insist(queue, () => this.#exchange(''));
  }

  /** The worker gets other work, or closes. What is entered until the server knows comes as always. */
  withdraw(): void {
    // cure: a worker that gets other work offers nothing
    if (this.#op === 0) return;
    if (this.#call) this.#isUnwanted = true;
    else this.#send(() => this.#exchange(''));
  }

  /** Made with the settle of the only request that the worker has. */
  next(): NextOffer | undefined {
    if (this.#op > 0 || this.#call || this.#hooks.sessions() > 1) return undefined;
    if (!this.#mayOffer || this.#isMemoryUnknown) return undefined;
    const sentAt = performance.now();
    const made = (now: number) => {
      this.#clock = { sentAt, now };
      this.#isNoted = false;
    };
    return { known: this.#known, terms: this.#make(), made };
  }

  /** Makes an offer, or makes it anew, and learns of what was entered without a message. */
  async check(): Promise<void> {
    const isDue = performance.now() - this.#madeAt >= RENEW_MS;
    if (this.#call || (this.#op > 0 && !isDue)) return;
    this.#send(async () => {
      const offers = this.#hooks.sessions() === 0 && this.#isChosen && this.#mayOffer;
      if (offers) await this.#serverMemory.refreshIfStale();
      const still = offers && this.#hooks.sessions() === 0 && this.#mayOffer;
      // cure: notes that are known do not hide the offers of others
      const mayAsk = this.#op > 0 || this.#isNoted;
      if (still || mayAsk) await this.#exchange(still ? this.#make() : '');
    });
    await this.#call;
  }

  /** One call at a time. Without an answer, the next check asks. */
  #send(call: () => Promise<void>): void {
    this.#isUnwanted = false;
    this.#call = call()
      .catch(() => {
        this.#madeAt = Number.NEGATIVE_INFINITY;
      })
      .then(() => {
        this.#call = undefined;
        // cure: an offer that was made meanwhile is taken back
        if (this.#isUnwanted) this.withdraw();
      });
  }

  /** Messages may have been missed until now: asks at once what was entered. */
  ask(): void {
    if (this.#op === 0) return;
    this.#madeAt = Number.NEGATIVE_INFINITY;
    void this.check();
  }

  /**
   * A request was entered. Returns from when on its lease counts; undefined: it is known. A message may have been under way
   * for long, so the lease counts from when the server entered it.
   */
  granted({ id, generation, op, entered }: Granted): number | undefined {
    const name = `${op} ${id}~${generation}`;
    // cure: a request that was offered is entered once
    if (name === this.#known) return undefined;
    this.#known = name;
    this.#isNoted = true;
    // The answer to the first offer may come behind the message.
    const earliest = op === this.#op ? this.#madeAt : Number.NEGATIVE_INFINITY;
    if (op === this.#op) this.#op = 0;
    if (!this.#clock) return earliest;
    const { sentAt, now } = this.#clock;
    // cure: the lease of what was offered counts from the enter
    return Math.min(performance.now(), sentAt + entered.ends - this.#context.leaseMs - now);
  }

  get #serverMemory() {
    return this.#context.memory.of(this.#queue.keys.open);
  }

  /** Whether the memory of the server is not known; it is asked then. An enter with tokens asks, too. */
  get #isMemoryUnknown(): boolean {
    const { isStale } = this.#serverMemory;
    if (isStale) void this.#serverMemory.refresh();
    return isStale;
  }

  get #mayOffer(): boolean {
    const { lately, blockedAt } = this.#context;
    const now = performance.now();
    // Meanwhile its pop waits on: a handler that blocks the event loop would keep the next token from others.
    // cure: a worker whose handlers block the event loop offers nothing
    if (lately.averageMs === undefined || now - blockedAt < BLOCKED_MS) return false;
    // One slot is left for the pop that waits.
    const hasRoom = this.#slots.free > 1 && !this.#serverMemory.tight;
    return hasRoom && this.isPossible && now >= this.#silentUntil && this.#hooks.isWaiting();
  }

  get #isChosen(): boolean {
    const fleet = this.#hooks.fleet();
    if (fleet <= OFFERING) return true;
    const now = performance.now();
    if (now - this.#drawnAt >= RENEW_MS) {
      this.#drawnAt = now;
      this.#isDrawn = Math.random() * fleet < OFFERING;
    }
    return this.#isDrawn;
  }

  #make(): string {
    const { leaseMs, lately, quantumMs, handlers, mayReadAhead } = this.#context;
    this.#op = this.#context.nextOp();
    this.#madeAt = performance.now();
    const { averageMs = Number.POSITIVE_INFINITY } = lately;
    const ahead = mayReadAhead ? aheadIn(averageMs, quantumMs) : 0;
    const quick = mayReadAhead ? quickIn(averageMs, quantumMs) : 0;
    const want = this.#slots.free - 1;
    const most = mostAtEnter(quick);
    const channel = offerChannel(this.#context.id);
    return `${this.#op} ${leaseMs} ${want} ${most} ${ahead} ${quick} ${channel} ${handlers.served}`;
  }

  async #exchange(terms: string): Promise<void> {
    const sentAt = performance.now();
    const { now, taken } = await this.#queue.offer(this.#context.id, this.#known, terms);
    this.#clock = { sentAt, now };
    this.#isNoted = taken !== '';
    if (terms === '' || taken !== '') this.#op = 0;
    if (taken === '') return;
    // It may come on another connection; timers go before what has come there.
    if (taken !== this.#known) await pause(ON_ITS_WAY_MS).then(nextTurn);
    if (taken === this.#known) return;
    this.#known = taken;
    this.#silentUntil = performance.now() + MISSED_MS;
    const [, op, id, generation] = /^(\d+) (.*)~(\d+)$/.exec(taken) as unknown as string[];
    this.#hooks.onMissed(id as string, Number(generation), Number(op));
  }
}
