import { type Held, Isolation } from './isolation.js';

/**
 * Among how many requests the slots of a big worker are shared at first. With a slot for each of a
 * hundred, each would settle its sub-requests one by one; those that wait meanwhile get their turn.
 */
const SHARES = 12;
/** Over how many of the last requests it is averaged how many slots one makes use of. */
const LATELY = 8;

/**
 * The slots of one worker process: how many sub-requests it may hold at once, over all requests, and
 * over all queues where several workers share them. Pure counting; whoever waits for a free one is
 * told when there is.
 *
 * Those that share have ranks, in the order in which they joined. Each asks its queue for tokens
 * without waiting when a slot is free and everybody before it rests: has asked and found nothing, or
 * takes no work. So a free slot takes from the first queue that has a task. When somebody found something
 * the round begins anew; when all rest, all wait at the server.
 *
 * The shards of one queue have the same rank: who found something goes behind its equals. So one that
 * has a token is asked before each of the others has found something twice (or, where they waited at
 * the servers and several were answered in one moment, three times: in which order is not known).
 */
export class SlotPool {
  readonly capacity: number;
  /** What runs a suspect alone in this process, whichever queue it is of. */
  readonly alone: Isolation;
  readonly #workers: Held[] = [];
  readonly #members: Slots[] = [];
  /** Equals together, in the order in which they have their turn. */
  readonly #ranks: Slots[][] = [];
  #taken = 0;

  constructor(capacity: number) {
    this.capacity = capacity;
    this.alone = new Isolation(
      this,
      () => this.#workers.flatMap((worker) => [...worker.held()]),
      () => this.#workers.reduce((sum, { running }) => sum + running(), 0),
    );
  }

  get taken(): number {
    return this.#taken;
  }

  /** How many queues share it. */
  get size(): number {
    return this.#members.length;
  }

  /** One more worker, of one queue, behind those that are there. */
  join(worker: Held): Slots {
    return this.joinAll(worker, 1)[0] as Slots;
  }

  /** The same for the shards of a queue, which are equals. */
  joinAll(worker: Held, shards: number): readonly Slots[] {
    this.#workers.push(worker);
    const equals: readonly Slots[] = Array.from({ length: shards }, () => new Slots(this));
    this.#members.push(...equals);
    this.#ranks.push([...equals]);
    return equals;
  }

  /** Whether everybody who goes before this one leaves a free slot to it. */
  isTurnOf(slots: Slots): boolean {
    for (const rank of this.#ranks) {
      for (const member of rank) {
        if (member === slots) return true;
        if (!member.isAside) return false;
      }
    }
    return false;
  }

  take(n: number): void {
    this.#taken += n;
    this.tell();
  }

  /** Something is free, is not, or somebody rests. */
  tell(): void {
    for (const member of this.#members) member.look();
  }

  hasEquals(slots: Slots): boolean {
    return this.#ranks.some((rank) => rank.length > 1 && rank.includes(slots));
  }

  /** It found something: whoever did not looks again before it does, and its equals have their turn. */
  found(slots: Slots): void {
    const rank = this.#ranks.find((one) => one.includes(slots));
    rank?.push(...rank.splice(rank.indexOf(slots), 1));
    for (const member of this.#members) member.startAnew();
    if (rank && rank.length > 1) this.tell();
  }

  get allRest(): boolean {
    return this.#members.every((member) => member.isAside);
  }
}

/** The slots as one worker has them. */
export class Slots {
  readonly #pool: SlotPool;
  readonly #onFull = new Set<() => void>();
  /** Not to be used by this worker, whatever the others do. */
  #withheld = 0;
  /** Until its intake starts it asks for nothing. */
  #rests = true;
  /** How many slots a request made use of lately, as far as its share goes. */
  #used: number;
  #waiting: (() => void)[] = [];
  #restingWithAll: ((all: boolean) => void) | undefined;

  constructor(pool: SlotPool) {
    this.#pool = pool;
    this.#used = this.#share;
  }

  /** Most slots that one of several requests is to have at first. */
  get #share(): number {
    return Math.max(1, Math.floor(this.capacity / SHARES));
  }

  get capacity(): number {
    return this.#pool.capacity;
  }

  get free(): number {
    return Math.max(0, this.capacity - this.#pool.taken - this.#withheld);
  }

  /** How many tokens to take for the free slots: one for as many as a request makes use of, at most its share. */
  get tokens(): number {
    return Math.ceil(this.free / Math.max(1, this.#used));
  }

  /** A request was entered and took `slots`; `more`: it would have taken more. */
  entered(slots: number, more: boolean): void {
    const used = more ? this.#share : Math.min(slots, this.#share);
    this.#used += (used - this.#used) / LATELY;
  }

  /** How many more are taken than there are. */
  get over(): number {
    return Math.max(0, this.#pool.taken + this.#withheld - this.capacity);
  }

  /** Its pop, which waited, is being ended: equals behind it leave it its turn until it is back. */
  comesBack(): void {
    if (this.#pool.hasEquals(this)) this.#rests = false;
  }

  /** Its server does not answer: equals have their turn meanwhile. Ranks are strict, and wait. */
  loseTurn(): void {
    if (this.#pool.hasEquals(this)) this.rests = true;
  }

  /** Whether workers of other queues use them too. */
  get shared(): boolean {
    return this.#pool.size > 1;
  }

  /** Takes (or, negative, gives back) `n` slots. Never refused: a zombie may hold one too many. */
  take(n: number): void {
    this.#pool.take(n);
  }

  /** Takes (or, negative, gives back) `n` slots for this worker alone: others may use them. */
  withhold(n: number): void {
    this.#withheld += n;
    this.#pool.tell();
  }

  /** Whether its queue had nothing when it was asked in this round, or is out of reach. */
  set rests(rests: boolean) {
    if (rests === this.#rests) return;
    this.#rests = rests;
    if (rests) this.#pool.tell();
  }

  /** Calls back when all are taken while this one rests. */
  onFull(listener: () => void): void {
    this.#onFull.add(listener);
  }

  /** Whether it leaves a free slot to others. */
  get isAside(): boolean {
    return this.#rests || this.free === 0;
  }

  /** Whether a slot is free, and nobody who goes before wants it. */
  get #isItsTurn(): boolean {
    return this.free > 0 && this.#pool.isTurnOf(this);
  }

  /** Rests until all do, and answers true; false when there is a slot to ask for again, or none is free. */
  restWithAll(): Promise<boolean> {
    if (this.free === 0) return Promise.resolve(false);
    this.rests = true;
    if (this.#pool.allRest) return Promise.resolve(true);
    return new Promise((resolve) => {
      this.#restingWithAll = resolve;
    });
  }

  /** The queue had something. */
  found(): void {
    this.#pool.found(this);
  }

  startAnew(): void {
    this.#endRest(false);
  }

  #endRest(all: boolean): void {
    const end = this.#restingWithAll;
    if (!end) return;
    this.#restingWithAll = undefined;
    // From this moment on, or somebody behind would ask before it does.
    if (!all) this.#rests = false;
    end(all);
  }

  /** Something changed in the pool. */
  look(): void {
    if (this.#restingWithAll) {
      if (this.free === 0) this.#endRest(false);
      else if (this.#pool.allRest) this.#endRest(true);
    }
    if (this.#rests && this.#pool.taken >= this.capacity) {
      for (const listener of this.#onFull) listener();
    }
    if (this.#waiting.length > 0 && this.#isItsTurn) this.#release();
  }

  /** Resolves when a slot is free and it is this worker's turn, or when `wake` is called. */
  whenFree(): Promise<void> {
    if (this.#isItsTurn) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Lets go of everybody who waits, as when the worker closes. */
  wake(): void {
    this.#endRest(false);
    this.#release();
  }

  #release(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}
