import { randomBytes } from 'node:crypto';

/** After a message was missed or the channel refused, requests are awaited on their own channels for so long, in ms. */
const MISTRUST_MS = 60_000;
/** After so many submissions that nobody awaited, the channel is not named any more. */
const UNAWAITED = 100;

/** What a submission named, and when, by `performance.now()`, before it was sent. */
export interface NamedChannel {
  /** '': none. */
  readonly channel: string;
  readonly sinceMs: number;
}

/**
 * The channel of this process, which it names when it submits a request: the script that completes the request
 * publishes there too. So a process that awaits its own requests subscribes once, before it submits them, and neither
 * subscribes to each request nor reads its state to see whether it missed the message.
 *
 * A message that is missed costs time only: the state is read at the pace of read-pace.ts. The first miss
 * has the requests awaited on their own channels for a minute.
 */
export class CallerChannel {
  #channel: string | undefined;
  /** Since when it is subscribed. */
  #heardSinceMs = Number.POSITIVE_INFINITY;
  #mistrustedUntilMs = 0;
  #unawaited = 0;

  /** For a submission that begins now. */
  name(nowMs = performance.now()): NamedChannel {
    const mayName =
      nowMs >= this.#mistrustedUntilMs &&
      // cure: a process that does not await its requests is not told of their ends
      this.#unawaited < UNAWAITED;
    this.#unawaited += 1;
    return { channel: (mayName && this.#channel) || '', sinceMs: nowMs };
  }

  /**
   * A request that this process submitted is awaited: so it may await others.
   * @returns the channel, if it is to be subscribed now. It contains the id, so that a user with rights to channels of
   *   such ids has rights to it.
   */
  awaited(id: string, nowMs = performance.now()): string | undefined {
    this.#unawaited = 0;
    if (this.#channel || nowMs < this.#mistrustedUntilMs) return undefined;
    this.#channel = `done:{${id}~${randomBytes(6).toString('base64url')}}`;
    return this.#channel;
  }

  is(channel: string): boolean {
    return channel === this.#channel;
  }

  /** The channel is subscribed from here on. */
  heard(nowMs = performance.now()): void {
    this.#heardSinceMs = Math.min(this.#heardSinceMs, nowMs);
  }

  /** Whether all that was published since the submission named the channel has arrived, or will. */
  hears({ channel, sinceMs }: NamedChannel): boolean {
    return this.is(channel) && this.#heardSinceMs <= sinceMs;
  }

  /**
   * Messages may have been missed: the channel is given up. One that could not be subscribed, or on which one was
   * missed for certain (`isMistrusted`), is followed by none for a while.
   * @returns the channel, if there was one
   */
  giveUp(isMistrusted: boolean, nowMs = performance.now()): string | undefined {
    const channel = this.#channel;
    const wasHeard = this.#heardSinceMs <= nowMs;
    this.#channel = undefined;
    this.#heardSinceMs = Number.POSITIVE_INFINITY;
    // cure: a process that missed a message awaits requests on their own channels
    if (isMistrusted || !wasHeard) this.#mistrustedUntilMs = nowMs + MISTRUST_MS;
    return channel;
  }
}
