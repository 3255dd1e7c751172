import {
  backoff,
  type Connection,
  DroppedError,
  ExpiredError,
  NotFoundError,
  pause,
  type QueueCommands,
  RequestCommands,
  type RequestState,
  requestKeys,
} from '@piecework/protocol';
import { Subscriber } from './subscriber.js';

/**
 * Everybody who waits for a completion in this process. A waiter subscribes first and reads the state
 * second, so that a completion in between is not missed; the state is read again after every doubt
 * about the subscription, and of all that are awaited every `sweepMs`. The state is the truth, the
 * message only a reason to look.
 */

interface Waiter {
  readonly resolve: (state: RequestState) => void;
  readonly reject: (error: Error) => void;
}

interface Awaited {
  readonly id: string;
  readonly commands: RequestCommands;
  readonly waiters: Set<Waiter>;
  /** Whether the request was ever there while somebody waited. */
  seen: boolean;
  checking: boolean;
  again: boolean;
}

/** How many states a sweep reads at once. */
const SWEEP_BATCH = 200;

export class Waiters {
  readonly #connection: Connection;
  readonly #queue: QueueCommands;
  readonly #sweepMs: number;
  readonly #onBusy: (busy: boolean) => void;
  readonly #awaited = new Map<string, Awaited>();
  readonly #byChannel = new Map<string, Awaited>();
  readonly #subscriptions = new Map<string, Promise<void>>();
  #subscriber: Subscriber | undefined;
  #sweeping: AbortController | undefined;

  constructor(
    connection: Connection,
    queue: QueueCommands,
    options: { sweepMs: number; onBusy: (busy: boolean) => void },
  ) {
    this.#connection = connection;
    this.#queue = queue;
    this.#sweepMs = options.sweepMs;
    this.#onBusy = options.onBusy;
  }

  /** Waits until the request is complete; `signal` lets go of it. */
  wait(id: string, signal: AbortSignal): Promise<RequestState> {
    return new Promise((resolve, reject) => {
      const awaited = this.#awaited.get(id) ?? this.#begin(id);
      const waiter: Waiter = { resolve, reject };
      awaited.waiters.add(waiter);
      signal.addEventListener('abort', () => this.#leave(awaited, waiter), { once: true });
      void this.#subscription(awaited).then(() => this.#check(awaited));
    });
  }

  /** Lets go of everybody. */
  async close(error: Error): Promise<void> {
    for (const awaited of this.#awaited.values()) {
      for (const waiter of awaited.waiters) waiter.reject(error);
      awaited.waiters.clear();
      this.#end(awaited);
    }
    await this.#subscriber?.close();
    this.#subscriber = undefined;
  }

  #begin(id: string): Awaited {
    const awaited: Awaited = {
      id,
      commands: new RequestCommands(this.#connection, id),
      waiters: new Set(),
      seen: false,
      checking: false,
      again: false,
    };
    this.#awaited.set(id, awaited);
    this.#byChannel.set(requestKeys(id).channel, awaited);
    if (this.#awaited.size === 1) {
      this.#onBusy(true);
      this.#sweeping = new AbortController();
      void this.#sweep(this.#sweeping.signal);
    }
    return awaited;
  }

  #subscription({ id, commands }: Awaited): Promise<void> {
    this.#subscriber ??= new Subscriber(this.#connection, {
      onMessage: (channel) => this.#checkChannel(channel),
      onDoubt: (channels) => {
        for (const channel of channels) this.#checkChannel(channel);
      },
    });
    let subscription = this.#subscriptions.get(id);
    if (!subscription) {
      subscription = this.#subscriber.add(commands.keys.channel);
      this.#subscriptions.set(id, subscription);
    }
    return subscription;
  }

  #checkChannel(channel: string): void {
    const awaited = this.#byChannel.get(channel);
    if (awaited) void this.#check(awaited);
  }

  #leave(awaited: Awaited, waiter: Waiter): void {
    awaited.waiters.delete(waiter);
    if (awaited.waiters.size === 0) this.#end(awaited);
  }

  #end(awaited: Awaited): void {
    if (this.#awaited.get(awaited.id) !== awaited) return;
    const { channel } = awaited.commands.keys;
    this.#awaited.delete(awaited.id);
    this.#byChannel.delete(channel);
    this.#subscriptions.delete(awaited.id);
    this.#subscriber?.remove(channel);
    if (this.#awaited.size > 0) return;
    this.#sweeping?.abort();
    this.#onBusy(false);
  }

  async #sweep(signal: AbortSignal): Promise<void> {
    for (;;) {
      await pause(this.#sweepMs * (0.75 + Math.random() / 2), signal);
      if (signal.aborted) return;
      const all = [...this.#awaited.values()];
      for (let i = 0; i < all.length; i += SWEEP_BATCH) {
        await Promise.all(all.slice(i, i + SWEEP_BATCH).map((awaited) => this.#check(awaited)));
      }
    }
  }

  /** Reads the state and tells the waiters what it says; tries until it could be read. */
  async #check(awaited: Awaited): Promise<void> {
    if (awaited.checking) {
      awaited.again = true;
      return;
    }
    awaited.checking = true;
    const waits = backoff(100, 2_000);
    do {
      awaited.again = false;
      try {
        await this.#look(awaited);
      } catch {
        // Redis does not answer now; that is no reason to give up waiting.
        awaited.again = true;
        await pause(waits.next(), this.#sweeping?.signal);
      }
    } while (awaited.again && awaited.waiters.size > 0);
    awaited.checking = false;
  }

  async #look(awaited: Awaited): Promise<void> {
    const { id, commands } = awaited;
    let state = await commands.state();
    if (!state || state.status === 'void' || state.status === 'dropped') {
      const { open, endedAt } = await this.#queue.whereabouts(id);
      // Open under a newer generation: about to be created, or created just now.
      if (open !== undefined && open > (state?.generation ?? 0)) return;
      if (!state) state = await commands.state();
      if (!state || state.status === 'void') {
        const expired = awaited.seen || endedAt !== undefined;
        this.#settle(awaited, expired ? new ExpiredError(id) : new NotFoundError(id));
        return;
      }
    }
    if (state.status === 'dropped') this.#settle(awaited, new DroppedError(id));
    else if (state.status === 'complete') this.#settle(awaited, state);
    else awaited.seen = true;
  }

  #settle(awaited: Awaited, verdict: RequestState | Error): void {
    const waiters = [...awaited.waiters];
    awaited.waiters.clear();
    this.#end(awaited);
    for (const waiter of waiters) {
      if (verdict instanceof Error) waiter.reject(verdict);
      else waiter.resolve(verdict);
    }
  }
}
