import {
  Agenda,
  type Connection,
  DroppedError,
  type Idle,
  idleFactor,
  type RecentEnd,
  type RecentEnds,
  RequestReads,
  type RequestState,
  type ResultsEntry,
  recentEnds,
  type Shards,
  Subscriber,
  safely,
  TIMES,
} from '@piecework/protocol';
import { CallerChannel, type NamedChannel } from './caller-channel.js';
import type { FirstReach } from './first-reach.js';
import { addressed, type Notice, noticeOf } from './notice.js';
import { lacksRight } from './persist.js';
import { ReadPace } from './read-pace.js';
import { ReadPool } from './read-pool.js';
import { readState, type StateRead } from './read-state.js';
import { Subscription } from './subscription.js';
import { areOf, type EndWithResults, isKnown, type Joining, type Watch } from './watch.js';

/**
 * Everything that is awaited through one notifier. A request with any number of waiting callers is watched once:
 * its channel is subscribed, or, if this process submitted it, the channel of the process (caller-channel.ts). Its
 * state is read after that, after anything that may have lost a notice, and at the pace of read-pace.ts. A notice of
 * the generation that was seen, or of a later one, carries the final counts and ends the wait. Any other notice only
 * asks for a read, so that a lost, doubled or late notice costs time and nothing else. A completion cannot be missed
 * (I5).
 *
 * Reads that fail are repeated with backoff for as long as somebody waits, unless that cannot help, as without the
 * rights. While anything is awaited, the notifier also ticks the agenda: deadlines take effect with no worker alive.
 */

/** How often all states are read although no notice came, in ms. */
const SWEEP_MS = 15_000;
/** How long the subscribing connection may take to answer the ping that is sent every `sweepMs`, in ms. */
const PING_MS = 5_000;

export class Waiters {
  readonly #connection: Connection;
  readonly #queue: Shards;
  readonly #firstReach: FirstReach;
  readonly #subscriber: Subscriber;
  readonly #caller = new CallerChannel();
  readonly #ends: RecentEnds;
  /** Of each shard. */
  readonly #agendas: readonly Agenda[];
  readonly #sweepMs: number;
  /** By channel. */
  readonly #watches = new Map<string, Watch>();
  readonly #reads: ReadPool<Watch>;
  readonly #pace: ReadPace<Watch>;
  #stepTimer: NodeJS.Timeout | undefined;
  #pingedAt = 0;

  constructor(
    connection: Connection,
    queue: Shards,
    firstReach: FirstReach,
    {
      idle,
      sweepMs = SWEEP_MS * idleFactor(idle),
      onError: listener,
    }: { idle: Idle; sweepMs?: number; onError?: (error: unknown) => void },
  ) {
    // cure: a listener of a notifier ends nothing
    const onError = safely(listener);
    this.#connection = connection;
    this.#ends = recentEnds(connection);
    this.#queue = queue;
    this.#firstReach = firstReach;
    this.#sweepMs = sweepMs;
    this.#pace = new ReadPace(sweepMs);
    this.#reads = new ReadPool((watch) => this.#read(watch), onError);
    const agenda = { onError, restMs: () => TIMES.tickMs * idleFactor(idle) };
    this.#agendas = queue.all.map((shard) => new Agenda(connection, shard, agenda));
    this.#subscriber = new Subscriber(connection, {
      onNotice: (channel, message) => this.#onNotice(channel, message),
      // cure: re-read after reconnect
      onMaybeMissed: (channels) => this.#onMaybeMissed(channels),
      onError,
    });
  }

  /** What a submission that begins now names as the channel of this process. */
  name(): NamedChannel {
    return this.#caller.name();
  }

  /** Watches a request until the subscription's `leave`. */
  join(id: string, { seen = 0, named, awaits = false, afresh }: Joining = {}): Subscription {
    const request = new RequestReads(this.#connection, id);
    const { channel } = request.keys;
    if (named) this.#listen(id);
    const known = this.#watches.get(channel);
    const recent = known || afresh ? undefined : this.#recentEnd(id, awaits);
    if (recent && isKnown(recent, seen)) return this.#ended(request, recent);
    const watch = known ?? this.#watch(request, named);
    watch.seen = Math.max(watch.seen, seen);
    this.#pace.begin(watch, performance.now());
    const { subscriptions } = watch;
    const subscription: Subscription = this.#subscription(request, seen, () => {
      if (subscriptions.delete(subscription) && subscriptions.size === 0) this.#unwatch(channel);
    });
    subscriptions.add(subscription);
    const hearsAll = !known && watch.isTold && named !== undefined && this.#hears(id, named);
    if (hearsAll) subscription.noteRead(seen);
    // What is subscribed now is read when it is. Subscribed earlier: a notice may have been lost since.
    // cure: a request that may have ended before it was awaited is read
    if (known || afresh || (watch.isTold && !hearsAll)) this.#ask([channel]);
    void this.#expectRedis();
    return subscription;
  }

  /** The end of a request with all its results, if the message of its completion brought them lately. */
  endWithResults(id: string, { seen = 0, named }: Joining): EndWithResults | undefined {
    if (named) this.#listen(id);
    const { channel } = new RequestReads(this.#connection, id).keys;
    const recent = this.#watches.has(channel) ? undefined : this.#recentEnd(id, false);
    if (!recent?.results || !isKnown(recent, seen)) return undefined;
    return { state: recent.state, results: recent.results };
  }

  #recentEnd(id: string, awaits: boolean): RecentEnd | undefined {
    if (awaits) return this.#ends.claim(id);
    const recent = this.#ends.find(id);
    // Failures may have been redriven since by another process.
    // cure: results of a request with failures are read as they are now
    return recent?.state.failed ? undefined : recent;
  }

  #watch(request: RequestReads, named: NamedChannel | undefined): Watch {
    const { channel } = request.keys;
    const isTold = named !== undefined && this.#caller.is(named.channel);
    const watch = {
      request,
      subscriptions: new Set<Subscription>(),
      seen: 0,
      isTold,
      isSwept: false,
    };
    this.#watches.set(channel, watch);
    if (!isTold) this.#subscriber.add(channel);
    this.#stepLater();
    return watch;
  }

  /** Whether the end of a request has not been heard of, and will be. */
  #hears(id: string, named: NamedChannel): boolean {
    return this.#caller.hears(named) && this.#ends.noneSince(id, named.sinceMs);
  }

  #subscription(request: RequestReads, seen: number, leave: () => void): Subscription {
    const subscription: Subscription = new Subscription(seen, {
      ask: () => this.#ask([request.keys.channel]),
      expectThere: async () => {
        const read = await readState(request, this.#queue, subscription.generation);
        if (read.kind === 'absent') throw read.error;
      },
      leave,
    });
    return subscription;
  }

  /** A subscription to a request that has just ended. */
  #ended(request: RequestReads, { state, results }: RecentEnd): Subscription {
    const subscription = this.#subscription(request, state.generation, () => {});
    subscription.isRemembered = true;
    subscription.succeed(state, results);
    return subscription;
  }

  /** This process awaits what it submits: it subscribes the channel that its next submissions name. */
  #listen(id: string): void {
    if (!this.#connection.isOneServer) return;
    const channel = this.#caller.awaited(id);
    if (channel) this.#subscriber.add(channel);
  }

  #onMaybeMissed(channels: readonly string[]): void {
    const own = channels.find((channel) => this.#caller.is(channel));
    if (own !== undefined) {
      if (!this.#subscriber.has(own)) this.#giveUpCaller(false);
      else {
        this.#caller.heard();
        this.#ask(this.#told());
      }
    }
    this.#ask(channels);
  }

  /** Channels of the requests whose notice is expected on the channel of this process. */
  #told(): string[] {
    return [...this.#watches].filter(([, { isTold }]) => isTold).map(([channel]) => channel);
  }

  /** The channel of this process is not relied on any more: each request is awaited on its own. */
  #giveUpCaller(isMistrusted: boolean): void {
    const own = this.#caller.giveUp(isMistrusted);
    if (own !== undefined) this.#subscriber.remove(own);
    for (const channel of this.#told()) {
      (this.#watches.get(channel) as Watch).isTold = false;
      // cure: requests are awaited on their own channels when that of the process is lost
      this.#subscriber.add(channel);
    }
  }

  /** Ends every wait when no Redis was ever reached. */
  async #expectRedis(): Promise<void> {
    const refusal = await this.#firstReach.refusal();
    if (refusal === undefined) return;
    for (const channel of [...this.#watches.keys()]) {
      this.#end(channel, (subscription) => subscription.fail(refusal));
    }
  }

  /** Ends every wait with `error`. */
  async close(error: unknown): Promise<void> {
    for (const channel of [...this.#watches.keys()]) {
      this.#end(channel, (subscription) => subscription.fail(error));
    }
    await Promise.all([this.#stopAgendas(), this.#subscriber.close()]);
  }

  #onNotice(channel: string, message: string): void {
    if (!this.#caller.is(channel)) {
      this.#conclusion(channel, noticeOf(message));
      return;
    }
    const { channel: of, notice: text } = addressed(message);
    const notice = noticeOf(text);
    const id = of.slice(of.indexOf('{') + 1, -1);
    // cure: what another process dropped is not read from memory
    if (notice.kind === 'dropped') this.#ends.forget(id);
    // It may come before the caller awaits the request, or even knows that it was submitted.
    if (notice.kind === 'complete') this.#ends.note(id, notice, this.#watches.has(of));
    this.#conclusion(of, notice);
  }

  #conclusion(channel: string, notice: Notice): void {
    const watch = this.#watches.get(channel);
    if (!watch) return;
    // Before anything was read, a notice may be of a generation that ended before the caller asked.
    // Of a later one the state says whether it is of the same request.
    const { seen } = watch;
    if (
      notice.kind === 'complete' &&
      seen > 0 &&
      // cure: the end of another life of an id is not taken for that of this one
      areOf(watch, notice.state.generation)
    ) {
      this.#complete(channel, notice.state, notice.results);
    } else if (notice.kind === 'dropped' && seen > 0 && notice.generation >= seen) {
      const error = new DroppedError(watch.request.keys.id);
      this.#end(channel, (subscription) => subscription.fail(error));
    } else this.#ask([channel]);
  }

  #complete(
    channel: string,
    state: RequestState,
    results: readonly ResultsEntry[] | undefined,
  ): void {
    const id = this.#watches.get(channel)?.request.keys.id;
    if (id !== undefined) this.#ends.note(id, { state, results }, true);
    this.#end(channel, (subscription) => subscription.succeed(state, results));
  }

  #ask(channels: Iterable<string>): void {
    const watches: Watch[] = [];
    for (const channel of channels) {
      const watch = this.#watches.get(channel);
      if (watch) watches.push(watch);
    }
    this.#reads.ask(watches);
  }

  async #read(watch: Watch): Promise<void> {
    // Callers may know of different lives of the id, or join while a read is under way.
    const groups = new Map<number, Subscription[]>();
    for (const subscription of watch.subscriptions) {
      const group = groups.get(subscription.generation);
      if (group) group.push(subscription);
      else groups.set(subscription.generation, [subscription]);
    }
    try {
      for (const [seen, group] of groups)
        this.#conclude(watch, seen, group, await readState(watch.request, this.#queue, seen));
    } catch (error) {
      if (lacksRight(error)) return this.#end(watch.request.keys.channel, (one) => one.fail(error));
      for (const subscription of watch.subscriptions) subscription.hindered = error;
      throw error;
    }
  }

  /** `group`: the subscriptions that knew of the generation `seen` when the read began. */
  #conclude(watch: Watch, seen: number, group: readonly Subscription[], read: StateRead): void {
    const { id, channel } = watch.request.keys;
    const waiting = group.filter((subscription) => watch.subscriptions.has(subscription));
    // A reader may have learnt of a later generation meanwhile; one that learnt what was read needs no other read.
    const found = 'state' in read ? read.state.generation : seen;
    const asked = waiting.filter(({ generation }) => generation === seen || generation === found);
    if (asked.length < waiting.length) this.#ask([channel]);
    if (asked.length === 0) return;
    if (read.kind === 'complete') {
      const wasMissed = watch.isTold && watch.isSwept;
      this.#ends.note(id, { state: read.state, results: undefined }, true);
      this.#endSome(watch, asked, (subscription) => subscription.succeed(read.state, undefined));
      if (wasMissed) this.#giveUpCaller(true);
    } else if (read.kind === 'absent') {
      this.#endSome(watch, asked, (subscription) => subscription.fail(read.error));
    } else {
      watch.seen = Math.max(watch.seen, found);
      for (const subscription of asked) subscription.noteRead(found);
      this.#agendas[this.#queue.indexOf(id)]?.start();
    }
  }

  #endSome(
    { request, subscriptions }: Watch,
    ended: readonly Subscription[],
    notify: (subscription: Subscription) => void,
  ): void {
    for (const one of ended) subscriptions.delete(one);
    if (subscriptions.size === 0) this.#unwatch(request.keys.channel);
    for (const one of ended) notify(one);
  }

  #end(channel: string, notify: (subscription: Subscription) => void): void {
    const watch = this.#watches.get(channel);
    if (watch) this.#endSome(watch, [...watch.subscriptions], notify);
  }

  #unwatch(channel: string): void {
    const watch = this.#watches.get(channel);
    if (!watch) return;
    watch.subscriptions.clear();
    this.#watches.delete(channel);
    this.#reads.forget(watch);
    this.#pace.end(watch);
    if (!watch.isTold) this.#subscriber.remove(channel);
    if (this.#watches.size > 0) return;
    clearTimeout(this.#stepTimer);
    this.#stepTimer = undefined;
    void this.#stopAgendas();
  }

  #stopAgendas(): Promise<unknown> {
    return Promise.all(this.#agendas.map((agenda) => agenda.close()));
  }

  #stepLater(): void {
    this.#stepTimer ??= setTimeout(
      () => {
        this.#stepTimer = undefined;
        const now = performance.now();
        const due = this.#pace.due(now);
        for (const watch of due) watch.isSwept = true;
        // cure: state re-read by the waiter, from time to time
        this.#reads.ask(due);
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
