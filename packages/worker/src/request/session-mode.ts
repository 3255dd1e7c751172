type Mode = 'entering' | 'working' | 'leaving' | 'ended';

/**
 * The state machine of a session:
 *
 *   entering → working ⇄ leaving → ended
 *
 * entering: no permit has been granted yet.
 * working:  it has permits and reads as many sub-requests as they allow.
 * leaving:  it reads nothing more; each handler that ends gives its permit back. A session leaves
 *           when a read brought less than it asked for (dry),
 *           when its time slice has ended and somebody else waits (yielding, time-slice.ts),
 *           when its results need room on a server that is nearly full (memory-room.ts),
 *           when its lease is lost (session-lease.ts),
 *           when suspects are to run in this process (isolation.ts), and when the worker closes or the queue is
 *           paused. A new token makes it work again.
 * ended:    it has no permits and runs nothing; the worker forgets it, unless another enter is already waiting.
 */
export class SessionMode {
  #mode: Mode = 'entering';
  #yielding = false;
  #passesOn = false;
  #isDry = false;
  #handsOver = false;

  get working(): boolean {
    return this.#mode === 'working';
  }

  get leaving(): boolean {
    return this.#mode === 'leaving';
  }

  get ended(): boolean {
    return this.#mode === 'ended';
  }

  /** Whether it left so that somebody else gets a turn. */
  get yielding(): boolean {
    return this.#yielding;
  }

  /** Whether it left so that another process takes its suspects. */
  get passesOn(): boolean {
    return this.#passesOn;
  }

  /** Whether it left as it found nothing more to read. */
  get isDry(): boolean {
    return this.#isDry;
  }

  /** Whether it left, and others get each of its slots when the handler has ended, before the outcome is settled. */
  get handsOver(): boolean {
    return this.#handsOver;
  }

  /**
   * It has permits. `willing`: it may use them; otherwise they are only given back. Returns whether a time slice
   * begins with this call.
   */
  enter(willing: boolean): boolean {
    if (this.#mode === 'working') return false;
    this.#set(willing ? 'working' : 'leaving');
    if (!willing) return false;
    this.#yielding = false;
    this.#passesOn = false;
    this.#isDry = false;
    this.#handsOver = false;
    return true;
  }

  leave(): void {
    if (this.#mode !== 'ended') this.#set('leaving');
  }

  /** As `leave`, from `working` only: an answer that comes later changes nothing. */
  leaveWork(): void {
    if (this.#mode === 'working') this.#set('leaving');
  }

  /** A read brought less than it asked for. */
  runDry(): void {
    if (this.#mode !== 'working') return;
    this.#isDry = true;
    this.#set('leaving');
  }

  yield(): void {
    this.leave();
    this.#yielding = true;
  }

  /** It yielded, and nobody waits any more. Returns whether it works again. */
  resume(): boolean {
    return this.leaving && this.#yielding && this.enter(true);
  }

  handOver(): void {
    this.#handsOver = this.leaving;
  }

  /** To be followed by `leave`. */
  passOn(): void {
    this.#passesOn = true;
  }

  end(): void {
    this.#handsOver = false;
    this.#set('ended');
  }

  /** The only assignment of the mode. */
  #set(mode: Mode): void {
    this.#mode = mode;
  }
}
