import { Isolation, type Member } from './isolation.js';

/**
 * Among how many requests the slots of a big worker are shared at first. If each of a hundred requests had one slot,
 * each would settle its sub-requests one by one. Requests that wait meanwhile get their turn.
 */
const SHARES = 12;
/** Fewest slots of such a share, or all of a smaller worker: with fewer, hardly two outcomes are settled together. */
const LEAST_SHARE = 8;
/**
 * The same where handlers are short. Slots of short handlers change hands often, so that requests that wait have their
 * turn soon; and a settle of so many slots carries about as many outcomes as pays.
 */
const LEAST_SHORT_SHARE = 25;
/** Over how many of the last requests the number of slots that one uses is averaged. */
const LATELY = 8;

/**
 * The slots of one worker process: how many sub-requests it may have at once, of all requests, and of all queues
 * where several workers share the slots. It only counts, and wakes those that wait for a free slot.
 *
 * Queues that share have ranks, in the order in which they joined. Each asks its server for tokens, without waiting,
 * when a slot is free and all queues before it rest: they have asked and found nothing, or take no work. So a free
 * slot takes from the first queue that has something. When a queue has found something, the round begins anew; when
 * all rest, all wait at their servers.
 *
 * The shards of one queue have the same rank: one that found something goes behind its equals. So a shard that has a
 * token is asked before any other has found something twice (or three times, if they waited at the servers and
 * several were answered at the same moment: their order is not known).
 */
export class SlotPool {
  readonly capacity: number;
  /** Isolates the suspects of all queues in this process. */
  readonly isolation: Isolation;
  readonly #workers: Member[] = [];
  readonly #members: Slots[] = [];
  /** Equals together, in the order in which they have their turn. */
  readonly #ranks: Slots[][] = [];
  #taken = 0;

  constructor(capacity: number) {
    this.capacity = capacity;
    this.isolation = new Isolation(
      this,
      () => this.#workers.flatMap((worker) => [...worker.sessions()]),
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

  /** Adds a worker of one queue, behind those that are there. */
  join(worker: Member): Slots {
    return this.joinAll(worker, 1)[0] as Slots;
  }

  /** The same for the shards of a queue, which are equals. */
  joinAll(worker: Member, shards: number): readonly Slots[] {
    this.#workers.push(worker);
    const equals: readonly Slots[] = Array.from({ length: shards }, () => new Slots(this));
    this.#members.push(...equals);
    this.#ranks.push([...equals]);
    return equals;
  }

  /** Whether all that go before this one leave a free slot to it. */
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
    this.notify();
  }

  release(n: number): void {
    this.take(-n);
  }

  /** A slot became free or was taken, or a queue rests. */
  notify(): void {
    for (const member of this.#members) member.update();
  }

  hasEquals(slots: Slots): boolean {
    return this.#ranks.some((rank) => rank.length > 1 && rank.includes(slots));
  }

  /** It found something: those that did not ask again before it does, and its equals have their turn. */
  found(slots: Slots): void {
    const rank = this.#ranks.find((one) => one.includes(slots));
    rank?.push(...rank.splice(rank.indexOf(slots), 1));
    for (const member of this.#members) member.startAnew();
    if (rank && rank.length > 1) this.notify();
  }

  get allRest(): boolean {
    return this.#members.every((member) => member.isAside);
  }
}

/** The slots for one queue. */
export class Slots {
  readonly #pool: SlotPool;
  readonly #onFull = new Set<() => void>();
  /** How many are not to be used for this queue, whatever the others do. */
  #withheld = 0;
  /** Until its token fetcher starts, it asks for nothing. */
  #rests = true;
  /** Which part of its share a request used lately. */
  #used = 1;
  /** Whether handlers were short lately. */
  #areShort = false;
  #waiting: (() => void)[] = [];
  #restingWithAll: ((all: boolean) => void) | undefined;

  constructor(pool: SlotPool) {
    this.#pool = pool;
  }

  /**
   * Most slots that one of several requests is to have at first. `isShort`: whether its handlers are; undefined: not
   * known, so they are taken to be as those of others.
   */
  share(isShort: boolean | undefined): number {
    const least = (isShort ?? this.#areShort) ? LEAST_SHORT_SHARE : LEAST_SHARE;
    return Math.min(this.capacity, Math.max(least, Math.floor(this.capacity / SHARES)));
  }

  get capacity(): number {
    return this.#pool.capacity;
  }

  get free(): number {
    return Math.max(0, this.capacity - this.#pool.taken - this.#withheld);
  }

  /** How many tokens to take for the free slots: one for as many slots as a request uses, at most its share. */
  get tokens(): number {
    return this.tokensFor(this.free);
  }

  /** The same for `n` slots. */
  tokensFor(n: number): number {
    return n === 0 ? 0 : Math.max(1, Math.round(n / this.#usual));
  }

  /** How many slots so many requests use, as others did lately. */
  usedBy(requests: number): number {
    return Math.round(requests * this.#usual);
  }

  /** How many slots a request used lately. */
  get #usual(): number {
    return Math.max(1, this.#used * this.share(undefined));
  }

  /** A request was entered and uses `slots` slots; `more`: it would have taken more; `isShort` as for `share`. */
  entered(slots: number, more: boolean, isShort: boolean | undefined): void {
    this.#areShort = isShort ?? this.#areShort;
    const share = this.share(isShort);
    // After a freeze it may have fewer than before.
    const used = more ? 1 : Math.min(Math.max(0, slots) / share, 1);
    this.#used += (used - this.#used) / LATELY;
  }

  /** How many more are occupied than there are. */
  get over(): number {
    return Math.max(0, this.#pool.taken + this.#withheld - this.capacity);
  }

  /** Its waiting pop is being ended: equals behind it leave the turn to it until it is back. */
  comesBack(): void {
    if (this.#pool.hasEquals(this)) this.#rests = false;
  }

  /** Its server does not answer: equals have their turn meanwhile. Lower ranks wait. */
  loseTurn(): void {
    if (this.#pool.hasEquals(this)) this.rests = true;
  }

  /** Whether workers of other queues use them too. */
  get shared(): boolean {
    return this.#pool.size > 1;
  }

  /** Occupies `n` slots. Never refused: a zombie may occupy one too many. */
  take(n: number): void {
    this.#pool.take(n);
  }

  release(n: number): void {
    this.#pool.release(n);
  }

  /** Withholds (or, negative, no longer withholds) `n` slots from this queue; other queues may use them. */
  withhold(n: number): void {
    this.#withheld += n;
    this.#pool.notify();
  }

  /** Whether its queue had nothing when it was asked in this round, or is out of reach. */
  set rests(rests: boolean) {
    if (rests === this.#rests) return;
    this.#rests = rests;
    if (rests) this.#pool.notify();
  }

  /** Calls back when all are occupied while this one rests. */
  onFull(listener: () => void): void {
    this.#onFull.add(listener);
  }

  /** Whether it leaves a free slot to others. */
  get isAside(): boolean {
    return this.#rests || this.free === 0;
  }

  /** Whether a slot is free, and none that goes before wants it. */
  get #isItsTurn(): boolean {
    return this.free > 0 && this.#pool.isTurnOf(this);
  }

  /** Rests until all do, and resolves to true; to false when it has to ask again, or no slot is free. */
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
    // From this moment on, or one behind would ask before it does.
    if (!all) this.#rests = false;
    end(all);
  }

  /** Something changed in the pool. */
  update(): void {
    if (this.#restingWithAll) {
      if (this.free === 0) this.#endRest(false);
      else if (this.#pool.allRest) this.#endRest(true);
    }
    if (this.#rests && this.#pool.taken >= this.capacity) {
      for (const listener of this.#onFull) listener();
    }
    if (this.#waiting.length > 0 && this.#isItsTurn) this.#wakeAll();
  }

  /** Resolves when a slot is free and it is the turn of this queue, or when `wake` is called. */
  whenFree(): Promise<void> {
    if (this.#isItsTurn) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Ends all waiting, as when the worker closes. */
  wake(): void {
    this.#endRest(false);
    this.#wakeAll();
  }

  #wakeAll(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}
