import {
  Agenda,
  type Connection,
  DroppedError,
  RequestCommands,
  type Shards,
  Subscriber,
  telling,
} from '@piecework/protocol';
import type { FirstReach } from './first-reach.js';
import { type Looked, look } from './look.js';
import { Looks } from './looks.js';
import { noticeOf } from './notice.js';
import { Pace } from './pace.js';
import { Ticket } from './ticket.js';

/**
 * Everything that is awaited through one notifier. A request that anybody waits for is watched once:
 * its channel is subscribed, and its state is read after that, after whatever may have cost a
 * notice, and again and again at the pace of pace.ts. A notice of the life that was seen, or of a later one,
 * carries the final numbers and ends the wait. Any other only says that there is something to read: a
 * lost, doubled or late one costs time and nothing else. Completion cannot be missed (I5).
 *
 * Reads that fail are repeated with backoff for as long as somebody waits. While there is anything
 * to wait for, the agenda is looked at too, so that deadlines fire with no worker alive.
 */

/** So long the subscribing connection has for its answer to the ping, which is sent every `sweepMs`. */
const PING_MS = 5_000;

interface Watch {
  readonly request: RequestCommands;
  readonly tickets: Set<Ticket>;
  /** The generation that was seen last, or 0. */
  seen: number;
}

export class Waiters {
  readonly #connection: Connection;
  readonly #queue: Shards;
  readonly #firstReach: FirstReach;
  readonly #subscriber: Subscriber;
  /** Of each shard. */
  readonly #agendas: readonly Agenda[];
  readonly #sweepMs: number;
  /** By channel. */
  readonly #watches = new Map<string, Watch>();
  readonly #looks: Looks<Watch>;
  readonly #pace: Pace<Watch>;
  #step: NodeJS.Timeout | undefined;
  #pingedAt = 0;

  constructor(
    connection: Connection,
    queue: Shards,
    firstReach: FirstReach,
    { sweepMs, onError: listener }: { sweepMs: number; onError?: (error: unknown) => void },
  ) {
    const onError = telling(listener);
    this.#connection = connection;
    this.#queue = queue;
    this.#firstReach = firstReach;
    this.#sweepMs = sweepMs;
    this.#pace = new Pace(sweepMs);
    this.#looks = new Looks((watch) => this.#lookAt(watch), onError);
    this.#agendas = queue.all.map((shard) => new Agenda(connection, shard, { onError }));
    this.#subscriber = new Subscriber(connection, {
      onNotice: (channel, message) => this.#hear(channel, message),
      onMaybeMissed: (channels) => this.#ask(channels),
      onError,
    });
  }

  /** Watches a request until the ticket is given back by `leave`. `seen`: a life it is known to have, or 0. */
  join(id: string, seen = 0): Ticket {
    const request = new RequestCommands(this.#connection, id);
    const { channel } = request.keys;
    let watch = this.#watches.get(channel);
    if (watch) {
      // Subscribed long ago; but what if a notice was lost since?
      watch.seen = Math.max(watch.seen, seen);
      this.#ask([channel]);
    } else {
      watch = { request, tickets: new Set(), seen };
      this.#watches.set(channel, watch);
      this.#subscriber.add(channel);
      this.#stepLater();
    }
    this.#pace.begin(watch, performance.now());
    const { tickets } = watch;
    const ticket = new Ticket({
      ask: () => this.#ask([channel]),
      expectThere: async () => {
        const looked = await look(request, this.#queue, ticket.generation);
        if (looked.kind === 'absent') throw looked.error;
      },
      leave: () => {
        if (tickets.delete(ticket) && tickets.size === 0) this.#unwatch(channel);
      },
    });
    tickets.add(ticket);
    void this.#expectRedis();
    return ticket;
  }

  /** Ends every wait when there is no Redis, and never was. */
  async #expectRedis(): Promise<void> {
    const refusal = await this.#firstReach.refusal();
    if (refusal === undefined) return;
    for (const channel of [...this.#watches.keys()]) {
      this.#end(channel, (ticket) => ticket.fail(refusal));
    }
  }

  /** Ends every wait with `error`. */
  async close(error: unknown): Promise<void> {
    for (const channel of [...this.#watches.keys()]) {
      this.#end(channel, (ticket) => ticket.fail(error));
    }
    await Promise.all([this.#stopAgendas(), this.#subscriber.close()]);
  }

  #hear(channel: string, message: string): void {
    const watch = this.#watches.get(channel);
    if (!watch) return;
    const notice = noticeOf(message);
    // One who has seen nothing yet may hear of a life that ended before it asked.
    const isOurs = (generation: number) => watch.seen > 0 && generation >= watch.seen;
    if (notice.kind === 'complete' && isOurs(notice.state.generation)) {
      this.#end(channel, (ticket) => ticket.succeed(notice.state));
    } else if (notice.kind === 'dropped' && isOurs(notice.generation)) {
      const error = new DroppedError(watch.request.keys.id);
      this.#end(channel, (ticket) => ticket.fail(error));
    } else {
      this.#ask([channel]);
    }
  }

  #ask(channels: Iterable<string>): void {
    const watches: Watch[] = [];
    for (const channel of channels) {
      const watch = this.#watches.get(channel);
      if (watch) watches.push(watch);
    }
    this.#looks.ask(watches);
  }

  async #lookAt(watch: Watch): Promise<void> {
    // Nobody waits for it any more, although it was asked for.
    if (watch.tickets.size === 0) return;
    try {
      this.#conclude(watch, await look(watch.request, this.#queue, watch.seen));
    } catch (error) {
      for (const ticket of watch.tickets) ticket.hindered = error;
      throw error;
    }
  }

  #conclude(watch: Watch, looked: Looked): void {
    const { channel } = watch.request.keys;
    if (this.#watches.get(channel) !== watch) return;
    if (looked.kind === 'complete') {
      this.#end(channel, (ticket) => ticket.succeed(looked.state));
    } else if (looked.kind === 'absent') {
      this.#end(channel, (ticket) => ticket.fail(looked.error));
    } else {
      if (looked.kind === 'waiting') watch.seen = Math.max(watch.seen, looked.state.generation);
      for (const ticket of watch.tickets) ticket.noteLook(watch.seen);
      this.#agendas[this.#queue.indexOf(watch.request.keys.id)]?.start();
    }
  }

  #end(channel: string, tell: (ticket: Ticket) => void): void {
    const tickets = [...(this.#watches.get(channel)?.tickets ?? [])];
    this.#unwatch(channel);
    for (const ticket of tickets) tell(ticket);
  }

  #unwatch(channel: string): void {
    const watch = this.#watches.get(channel);
    if (!watch) return;
    watch.tickets.clear();
    this.#watches.delete(channel);
    this.#looks.forget(watch);
    this.#pace.end(watch);
    this.#subscriber.remove(channel);
    if (this.#watches.size > 0) return;
    clearTimeout(this.#step);
    this.#step = undefined;
    void this.#stopAgendas();
  }

  #stopAgendas(): Promise<unknown> {
    return Promise.all(this.#agendas.map((agenda) => agenda.stop()));
  }

  #stepLater(): void {
    this.#step ??= setTimeout(
      () => {
        this.#step = undefined;
        const now = performance.now();
        this.#looks.ask(this.#pace.due(now));
        if (now - this.#pingedAt >= this.#sweepMs) {
          this.#pingedAt = now;
          this.#subscriber.ping(PING_MS);
        }
        if (this.#watches.size > 0) this.#stepLater();
      },
      this.#pace.stepMs * (0.8 + 0.4 * Math.random()),
    );
  }
}
