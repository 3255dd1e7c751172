import {
  type Complete,
  ControlCommands,
  decodeError,
  decodePolicy,
  type Entry,
  type Expedited,
  indexOf,
  LEAST_SLOW_MS,
  type LongestRun,
  type Minted,
  type Outcome,
  type Place,
  RequestCommands,
  type Settled,
  slowAfterMs,
  TIMES,
  type Told,
  tellOpen,
  tellOver,
} from '@piecework/protocol';
import type { Shard } from '../fetch/shard.js';
import { Attempt } from '../handler/attempt.js';
import { LastCheckpoints, reportsOf, unsentOf } from '../handler/checkpoints.js';
import { RetryPolicy } from '../handler/retry-policy.js';
import type { Holding } from '../lease/renewal.js';
import { Listeners } from '../pull/listeners.js';
import type { ServerMemory } from '../report/memory.js';
import { RunLog } from '../report/run-log.js';
import type { Growth } from '../shared/growth.js';
import type { Usual } from '../shared/usual.js';
import type { Waiting } from '../shared/waiting-room.js';
import type { WorkerContext } from '../shared/worker-context.js';
import { Outcomes } from './outcomes.js';
import { ReadSize } from './read-size.js';
import { TokenReturn } from './token-return.js';

/** Most progress reports in one call: Lua unpacks no more than some thousand arguments. */
const REPORTS = 1_000;
/** Most sub-requests that come with the permits, if they are all that is ready. */
const READ_AT_ENTER = 16;
/** How long a request is held back whose results need room on a server that is nearly full. */
const FULL_HOLD_MS = 5_000;
/** From when something was to be due, by our clock, to when it is by the server's. */
const SLACK_MS = 20;
const NOBODY: ReadonlySet<Entry> = new Set();

/**
 * What a worker process has to do with one request: the permits it holds, the handlers that run
 * under them, and the outcomes that wait to be settled.
 *
 *   entering → working → leaving → over
 *
 * working: it holds permits and reads as many sub-requests as they allow.
 * leaving: it reads no more; each handler that ends gives its permit back. It leaves when a read
 *          brought less than was asked (dry), at the end of its time slice when somebody else waits
 *          (yielding), when its results need room that the server has not (memory.ts), when its lease is
 *          lost, when suspects are to run (isolation.ts), and when the
 *          worker closes. A new token makes it enter again.
 * over:    nothing held, nothing running; forgotten.
 *
 * One call at a time: the replies carry absolute permits, so their order must be that of the calls.
 * What a crash leaves: permits, which expire with the lease, and entries, which a tend reclaims.
 */
export class RequestSession {
  readonly id: string;
  readonly generation: number;
  /** Where its tokens are. */
  readonly shard: Shard;
  readonly #core: WorkerContext;
  readonly #commands: RequestCommands;
  readonly #control: ControlCommands;
  readonly #isContended: (priority: number, expedited?: Expedited) => Promise<boolean>;
  readonly #onTurn: (waiting: Waiting) => void;
  readonly #onOver: (session: RequestSession) => void;
  readonly #running = new Map<string, Attempt>();
  /** Handlers whose lease was lost: told to stop, under no permit, their slots still taken. */
  readonly #zombies = new Set<Attempt>();
  readonly #outcomes = new Outcomes();
  /** Who pulled, and is to hear what became of the outcomes. */
  readonly #listeners = new Listeners();
  readonly #lastCheckpoints = new LastCheckpoints();
  readonly #readSize = new ReadSize();
  readonly #growth: Growth;
  /** How long its handlers run. */
  readonly #usual: Usual;
  readonly #log: RunLog;
  /** Of the server that holds it. */
  #memory: ServerMemory;
  /** Suspects that wait until nothing else runs in this process. They count as running. */
  #suspects: readonly Entry[] = [];
  readonly #tokens: TokenReturn;
  readonly #holding: Holding;
  #mode: 'entering' | 'working' | 'leaving' | 'over' = 'entering';
  #yielding = false;
  /** It left so that another process takes its suspects. */
  #passesOn = false;
  #permits = 0;
  #reserved = 0;
  #held = 0;
  #dueNow = 0;
  /** Whether permits that the server may believe in are to be given back. */
  #unused = false;
  /** Which hold the permits are of, as the server numbers them. */
  #since = '';
  /** Number of the last call that was answered: a server that does not know it lost writes. */
  #answered = 0;
  /** Whether the agenda was told when a lease of this worker would be over. */
  #looked = false;
  #noted = 0;
  /** Shortest delay of what failed since the last settle. */
  #soonest = Number.POSITIVE_INFINITY;
  /** Of the connection, when it was last asked what it holds. */
  #epoch = 0;
  #task = '';
  #terms: RetryPolicy;
  /** What every sub-request is given alike. */
  readonly #parts: ConstructorParameters<typeof Attempt>[4];
  /** The attempt number of each unsettled outcome, by entry; kept only while somebody listens for 'settled'. */
  readonly #heard = new Map<string, number>();
  #place: Place = { priority: 0 };
  #sliceStart = 0;
  /** Own monotonic clock: the lease is not believed beyond this. */
  #until = 0;
  #renewedAt = 0;
  #renewing = false;
  #comparedAt = 0;
  /** Counts the replies that said how many permits are held. */
  #replies = 0;
  #queued = 0;
  #kicked = false;
  #tail: Promise<void> = Promise.resolve();

  constructor(
    core: WorkerContext,
    shard: Shard,
    id: string,
    generation: number,
    hooks: {
      /** Pauses the queue for so many ms. */
      holdQueue: (ms: number) => Promise<void>;
      /** Whether anybody else of the same or a higher priority waits. */
      isContended: (priority: number, expedited?: Expedited) => Promise<boolean>;
      /** Tokens that came for slots that are free now. */
      onTokens: (tokens: readonly string[], from: RequestSession) => void;
      /** Somebody in the waiting room whose turn it is. */
      onTurn: (waiting: Waiting) => void;
      onOver: (session: RequestSession) => void;
    },
  ) {
    this.#core = core;
    this.shard = shard;
    this.id = id;
    this.generation = generation;
    this.#commands = new RequestCommands(core.connection, id);
    this.#control = new ControlCommands(core.connection, id);
    this.#terms = new RetryPolicy(core, 1, {});
    this.#parts = {
      logger: core.logger,
      holds: { request: this.#hold, queue: hooks.holdQueue },
    };
    this.#holding = core.renewal.holding(id, generation);
    this.#growth = core.growths.of(id, generation);
    this.#usual = core.usuals.of(id, generation);
    const where = () => ({ queue: shard.name, ...(this.#task ? { task: this.#task } : {}) });
    this.#log = new RunLog(id, core.logger, core.flood, where);
    this.#memory = core.memory.of(this.#commands.keys.request);
    this.#tokens = new TokenReturn(core, shard, {
      isYielding: () => this.#yielding,
      onTokens: (tokens) => hooks.onTokens(tokens, this),
    });
    this.#isContended = hooks.isContended;
    this.#onTurn = hooks.onTurn;
    this.#onOver = hooks.onOver;
  }

  /** Whether it left so that somebody else gets a turn. */
  get yielding(): boolean {
    return this.#yielding;
  }

  /** Whether nothing runs, waits to be settled, or is under way; suspects may wait. */
  get quiet(): boolean {
    const running = this.#running.size + this.#zombies.size;
    return running + this.#outcomes.size + this.#queued === 0 && !this.#kicked;
  }

  /** When the handler was started that runs longest, as performance.now(); Infinity: none runs. */
  get oldest(): number {
    // They stand in the order of their start.
    const [first] = this.#running.values();
    return first?.startedAt ?? Number.POSITIVE_INFINITY;
  }

  /** The same for the registry. */
  get longest(): LongestRun | undefined {
    const [first] = this.#running.values();
    if (!first) return undefined;
    const { index, attempt, startedAt } = first;
    const { medianMs } = this.#usual;
    const median = medianMs === undefined ? {} : { medianMs: Math.round(medianMs) };
    const begun = Math.round(Date.now() - (performance.now() - startedAt));
    return { requestId: this.id, index, attempt, startedAt: begun, ...median };
  }

  /** Logs which handlers run far longer than usual, each once. */
  noteSlow(): void {
    const { slowMs } = this.#core;
    const now = performance.now();
    // Most often none does, and no median is needed to say so.
    if (now - this.oldest < (slowMs ?? LEAST_SLOW_MS)) return;
    const { medianMs } = this.#usual;
    const afterMs = slowMs ?? slowAfterMs(medianMs);
    for (const running of this.#running.values()) {
      if (now - running.startedAt < afterMs) return;
      if (!running.saidSlow) this.#log.slow(running, medianMs);
      running.saidSlow = true;
    }
  }

  /** How many sub-requests need a permit. */
  get #busy(): number {
    return this.#running.size + this.#suspects.length;
  }

  /** Turns tokens (their epochs) into permits for up to `want` slots, and goes to work. */
  enter(epochs: readonly string[], want: number): void {
    this.#reserved += want;
    this.#account();
    this.#exclusive(() => this.#enter(epochs, want));
  }

  /** Reads no more; gives permits back as handlers end. */
  leave(): void {
    if (this.#mode === 'over') return;
    if (this.#core.closing || this.shard.paused) this.#returnSuspects();
    this.#mode = 'leaving';
    this.#kick();
  }

  /** Aborts what still runs and gives it back unfinished. */
  abandon(): void {
    for (const running of this.#running.values()) {
      this.#lastCheckpoints.add(running);
      this.#outcomes.push({ entry: running.entry, kind: 'b' });
    }
    this.#letGo('the worker closes');
    this.leave();
  }

  /**
   * Asks at once what became of the request, as somebody says that it was cancelled or dropped; again
   * behind a call that is under way, because that may have brought more to run.
   */
  ask(): void {
    // Not answered, the next renewal asks.
    const now = () => this.renew(0).catch(() => {});
    void now();
    if (this.#queued > 0) this.#exclusive(now);
  }

  /** Extends the lease if nothing else did for `everyMs`, and tells what the handlers reported. */
  async renew(everyMs: number): Promise<void> {
    if (this.#permits === 0 || this.#renewing) return;
    const asked = performance.now();
    const checkpoints = unsentOf(this.#running.values());
    const reports = [...this.#reports(), ...reportsOf(checkpoints)];
    if (reports.length === 0 && asked - this.#renewedAt < everyMs) return;
    const { id, leaseMs } = this.#core;
    const replies = this.#replies;
    this.#renewing = true;
    const renewed = await this.#commands
      .renew(this.generation, id, leaseMs, reports)
      .finally(() => {
        this.#renewing = false;
      });
    this.#core.answeredAt = performance.now();
    const { verdict } = renewed;
    const granted = verdict === 'ok' || verdict === 'cancelling';
    if (granted) for (const { checkpoint, text } of checkpoints) checkpoint.kept(text);
    if (this.#permits === 0) return;
    if (verdict === 'cancelling') this.#cancel();
    // A settle or enter that was answered meanwhile is newer than this reply, unless the request is gone.
    if (replies !== this.#replies && verdict !== 'gone') return;
    if (granted) this.#extend(asked);
    else this.#lose(verdict === 'gone' ? 'the request is gone' : 'the lease was withdrawn');
  }

  /**
   * Stops believing in the lease by the own clock, before the server does. Asked before each handler
   * starts: a process that froze with a reply in hand begins nothing of it under a lease that is over.
   * Returns the time at which it looked, as performance.now().
   */
  fence(): number {
    const { leaseMs } = this.#core;
    const now = performance.now();
    if (this.#permits === 0 || now < this.#until - leaseMs / 10) return now;
    // A handler may have held up this loop, and the renewal thread renewed meanwhile.
    this.#until = Math.max(this.#until, this.#holding.askedAt() + leaseMs);
    if (now >= this.#until - leaseMs / 10) this.#lose('the lease ended');
    return now;
  }

  /**
   * Hands back what the server believes to be with this worker and is not, every `everyMs` at most:
   * what a read brought whose reply got lost, as when the connection broke and the client library
   * sent the read again. Nobody reclaims that as long as the worker holds permits.
   */
  compare(everyMs: number): void {
    const now = performance.now();
    if (this.#permits === 0 || now - this.#comparedAt < everyMs) return;
    this.#comparedAt = now;
    this.#exclusive(async () => {
      await this.#returnUnknown();
      await this.#pump();
    });
  }

  async #returnUnknown(): Promise<void> {
    const count = this.#running.size + this.#zombies.size + this.#outcomes.size + 100;
    const pending = await this.#core.insist(this.id, () =>
      this.#commands.pending(this.#core.id, count),
    );
    // Looked at after the answer: what ended meanwhile is among the outcomes.
    const known = new Set([...this.#outcomes.entries(), ...this.#running.keys()]);
    for (const { entry } of this.#suspects) known.add(entry);
    for (const { entry } of this.#zombies) known.add(entry);
    for (const entry of pending) if (!known.has(entry)) this.#outcomes.push({ entry, kind: 'b' });
  }

  #reports(): number[] {
    const reports: number[] = [];
    for (const running of this.#running.values()) {
      if (reports.length >= 2 * REPORTS) break;
      const n = running.takeProgress();
      if (n !== undefined) reports.push(running.index, n);
    }
    return reports;
  }

  /** Aborts what runs. What succeeds all the same counts; all else is handed back, and cancelled. */
  #cancel(): void {
    this.#returnSuspects();
    for (const running of this.#running.values()) running.abort('lost', 'the request is cancelled');
    this.leave();
  }

  #lose(why: string): void {
    this.#core.logger.warn({ requestId: this.id, why }, 'lease lost');
    const indexes = [...this.#running.values()].map(({ index }) => index);
    this.#core.events.tell('leaseLost', { requestId: this.id, why, indexes });
    // The server may think otherwise: an enter that was answered late granted from then on. Nobody
    // works under it, so it is given back; beside a handler that still runs it would be used twice.
    this.#unused = this.#permits > 0 && this.#running.size === 0 && this.#zombies.size === 0;
    this.#permits = 0;
    this.#outcomes.doubt();
    this.#returnSuspects();
    for (const running of this.#running.values()) {
      running.abort('lost', why);
      this.#zombies.add(running);
    }
    this.#running.clear();
    this.#account();
    this.leave();
  }

  #extend(asked: number): void {
    this.#until = Math.max(this.#until, asked + this.#core.leaseMs);
    this.#renewedAt = asked;
  }

  async #enter(epochs: readonly string[], want: number): Promise<void> {
    const { id, leaseMs, handlers } = this.#core;
    const wanted = await this.#roomFor(this.shard.takesWork ? want : 0).catch((error: unknown) => {
      this.#reserved -= want;
      throw error;
    });
    // Numbered when it is sent, because settles have numbers of the same row.
    const op = this.#core.nextOp();
    const asked = performance.now();
    this.#epoch = this.#core.connection.epoch;
    const entered = await this.#core
      .insist(this.id, () =>
        this.#commands.enter({
          ...{ generation: this.generation, worker: id, op, want: wanted, leaseMs, epochs },
          ...{ tasks: handlers.served, most: READ_AT_ENTER, answered: this.#answered },
        }),
      )
      .catch((error: unknown) => {
        this.#reserved -= want;
        throw error;
      });
    // From here to the accounting nobody else may run, or the slots would be given out twice.
    this.#reserved -= want;
    this.#answered = op;
    if (entered.verdict === 'complete' || entered.verdict === 'gone') {
      this.#end(entered.verdict === 'complete' ? entered : undefined);
      return;
    }
    if (entered.verdict === 'unserved') {
      this.#account();
      this.#tellOpen(() => this.shard.queue.park(this.id, this.generation, entered.task));
      return;
    }
    // After a freeze the old permits may be gone and these be new ones: what ran under those is not theirs.
    this.fence();
    if (this.#permits > 0 && entered.since !== this.#since) this.#lose('the lease was withdrawn');
    this.#since = entered.since;
    this.#extend(asked);
    this.#replies += 1;
    const { id: request, generation, shard } = this;
    const { priority, due } = entered;
    if (epochs.length === 0 && wanted === 0)
      this.#core.waitingRoom.add({ id: request, generation, shard, priority, due });
    else if (entered.permits <= this.#permits) this.#core.waitingRoom.delete(request);
    const granted = entered.permits - this.#permits;
    if (wanted > 0) this.shard.slots.entered(granted, granted >= wanted && entered.ready > 0);
    this.#permits = entered.permits;
    this.#task = entered.task;
    const { attempts, policy } = entered;
    this.#terms = new RetryPolicy(this.#core, attempts, decodePolicy(policy));
    this.#place = { priority, due };
    this.#dueNow = entered.dueNow;
    this.#account();
    this.#haveLookedAt(entered.ends);
    this.#tokens.push(this.#minted(entered.mint, entered.epoch));
    if (this.#permits > 0) {
      this.#log.begun(this.#permits);
      this.#work(wanted > 0 && this.shard.takesWork);
      this.#startUpTo(entered.entries);
      this.#readSize.note(entered.entries);
      this.#account();
      if (entered.entries.length > 0 && entered.ready === 0 && this.#mode === 'working')
        this.#mode = 'leaving';
      // Sent twice: what came with the first reply, if anything did, is with us and unknown.
      if (entered.ready < 0) await this.#returnUnknown();
    }
    await this.#pump();
  }

  /**
   * How many permits to ask for of `want`: none of a request whose results need room on a server that is
   * nearly full, which is held back instead; one as long as nobody knows whether they do.
   */
  async #roomFor(want: number): Promise<number> {
    this.#memory = this.#core.memory.of(this.#commands.keys.request);
    if (want === 0) return want;
    if (this.#memory.isStale) await this.#memory.look();
    if (!this.#memory.tight) return want;
    if (!this.#growth.isKnown) return 1;
    if (!(await this.#needsRoom())) return want;
    await this.#hold(FULL_HOLD_MS);
    return 0;
  }

  /** Whether settling it makes the server fuller, as far as is known. */
  async #needsRoom(): Promise<boolean> {
    const growth = this.#growth;
    if (!growth.isKnown) return false;
    growth.keeps ??= await this.#core.insist(this.id, () => this.#commands.keepsResults());
    return growth.needsRoom;
  }

  /**
   * A young request is first looked at when its intent is old enough, for the sake of its producer.
   * A lease that is over before that is to be looked at when it is over.
   */
  #haveLookedAt(ends: number): void {
    if (this.#permits === 0 || this.#looked || ends > this.generation + TIMES.intentGraceMs) return;
    this.#looked = true;
    this.#note(ends);
  }

  /** Has the request looked at by then, server time. */
  #note(time: number): void {
    this.#tellOpen(() => this.shard.queue.note(this.id, this.generation, time));
  }

  #tellOpen(tell: () => Promise<Told>): void {
    const { queue } = this.shard;
    this.#core.later(this.id, () => tellOpen(queue, this.#commands, this.generation, tell));
  }

  /** Begins a time slice, unless one is under way or the permits are only there to be returned. */
  #work(willing: boolean): void {
    if (this.#mode === 'working') return;
    this.#mode = willing ? 'working' : 'leaving';
    if (!willing) return;
    this.#yielding = false;
    this.#passesOn = false;
    this.#sliceStart = performance.now();
    this.#comparedAt = this.#sliceStart;
  }

  /** Settles, reads and starts until there is nothing to do but wait for handlers. */
  async #pump(): Promise<void> {
    while (this.#mode !== 'over') {
      this.fence();
      // Nothing may be awaited between this look and the settle: what ends meanwhile has to be asked for.
      if (this.#sliceIsOver()) await this.#askToStay();
      if (this.#lastCheckpoints.size > 0) {
        await this.#lastCheckpoints.send(this.#core, this.#commands, this.generation);
        continue;
      }
      if (this.#mayLackRoom) {
        await this.#lookForRoom();
        continue;
      }
      const working = this.#mode === 'working';
      // Handlers that are over their time still have their slots.
      const useful = Math.max(this.#busy, this.#permits - this.shard.slots.over);
      const free = working ? useful - this.#busy : 0;
      const keep = working ? Math.min(this.#permits, useful) : this.#busy;
      // What large payloads leave free the next round reads.
      const read = this.#dueNow > 0 || this.#outcomes.isMuch ? 0 : this.#readSize.of(free);
      if (this.#outcomes.size > 0 || read > 0 || keep < this.#permits || this.#unused) {
        this.#unused = false;
        await this.#settle(Math.max(keep, this.#busy), read);
      } else if (free > 0) {
        await this.#take(free);
      } else {
        return;
      }
    }
  }

  /** Whether the server is to be asked how full it is, or is too full for more of this request. */
  get #mayLackRoom(): boolean {
    if (this.#mode !== 'working') return false;
    const { isKnown, keeps, needsRoom } = this.#growth;
    const grows = isKnown && (keeps === undefined || needsRoom);
    return this.#memory.isStale || (this.#memory.tight && grows);
  }

  /**
   * Leaves a server that is too full for more of this request: it is held back for the whole fleet, so that its
   * permits go as handlers end, and its tokens come again when that is over.
   */
  async #lookForRoom(): Promise<void> {
    if (this.#memory.isStale) await this.#memory.look();
    if (!this.#memory.tight || !(await this.#needsRoom())) return;
    await this.#hold(FULL_HOLD_MS);
    if (this.#mode === 'working') this.#mode = 'leaving';
  }

  #sliceIsOver(): boolean {
    const age = performance.now() - this.#sliceStart;
    return this.#mode === 'working' && this.#outcomes.size > 0 && age >= this.#core.quantumMs;
  }

  /** Asks before leaving: nobody waits is by far the most frequent answer, and costs one call. */
  async #askToStay(): Promise<void> {
    const { waitingRoom } = this.#core;
    const { priority, due } = this.#place;
    const expedited = due ? { due, generation: this.generation } : undefined;
    const contended =
      waitingRoom.next(this.#place, this.id) !== undefined ||
      (await this.#isContended(priority, expedited));
    this.#sliceStart = performance.now();
    if (!contended || this.#mode !== 'working') return;
    this.#mode = 'leaving';
    this.#yielding = true;
  }

  async #settle(keep: number, read: number): Promise<void> {
    const since = this.#outcomes.doubtful ? '' : this.#since;
    const outcomes = this.#outcomes.next();
    const running = this.#busy;
    const op = this.#core.nextOp();
    const asked = performance.now();
    const { id, leaseMs } = this.#core;
    const numbers = { op, since, leaseMs, keep, running, read, answered: this.#answered };
    this.#epoch = this.#core.connection.epoch;
    const { settled, entries, unsure } = await this.#core.insist(this.id, () =>
      this.#commands.settle(this.generation, id, numbers, outcomes),
    );
    this.#answered = op;
    this.#listeners.tell(outcomes, settled.verdict !== 'gone');
    if (settled.verdict !== 'gone' && this.#heard.size > 0) this.#tellSettled(outcomes);
    if (settled.verdict !== 'ok') {
      this.#end(settled.verdict === 'complete' ? settled : undefined);
      return;
    }
    this.#extend(asked);
    const freed = this.#permits - settled.permits;
    this.#apply(settled);
    if (settled.permits < running) this.#lose('the lease was withdrawn');
    // A handler that ended since the call was sent makes no room: above a lowered limit, or paused, its
    // permit is not to be used again, as the next settle will say.
    this.#startUpTo(entries, settled.permits - running);
    this.#readSize.note(entries);
    if (settled.cancelling) this.#cancel();
    const room = Math.min(read, settled.permits - running);
    const dry = entries.length < room && settled.dueNow === 0 && !unsure && !settled.cut;
    if (dry && this.#mode === 'working') this.#mode = 'leaving';
    this.#account();
    this.#goOn();
    const minted = this.#minted(settled.mint, settled.epoch);
    const waiting = this.#yielding && freed > 0 ? this.#nextWaiting() : undefined;
    // Whoever waits for tokens has waited longer than this process would by then.
    const handsOn = this.#mode === 'leaving' && !waiting && !this.#passesOn;
    if (handsOn) this.#tokens.handOn(minted, freed);
    else this.#tokens.push(minted);
    if (waiting) this.#onTurn(waiting);
    // Sent twice: what came with the first reply, if anything did, is with us and unknown.
    if (unsure) await this.#returnUnknown();
  }

  #tellSettled(outcomes: readonly Outcome[]): void {
    const { events } = this.#core;
    for (const outcome of outcomes) {
      const attempt = this.#heard.get(outcome.entry);
      if (attempt === undefined) continue;
      this.#heard.delete(outcome.entry);
      const about = { requestId: this.id, index: indexOf(outcome.entry), attempt };
      if (outcome.kind === 's') events.tell('settled', { ...about, status: 'succeeded' });
      // Otherwise it will be tried again.
      else if (outcome.kind === 'f' && this.#isFinal(attempt, outcome))
        events.tell('settled', { ...about, status: 'failed', error: decodeError(outcome.value) });
    }
  }

  #isFinal(attempt: number, { delayMs }: { readonly delayMs: number }): boolean {
    return attempt >= this.#terms.attempts || delayMs < 0;
  }

  /** Who of the waiting room gets the slot that this one leaves. */
  #nextWaiting(): Waiting | undefined {
    const { closing, waitingRoom } = this.#core;
    return closing || this.shard.slots.free === 0
      ? undefined
      : waitingRoom.next(this.#place, this.id);
  }

  async #take(max: number): Promise<void> {
    const op = this.#core.nextOp();
    const taken = await this.#core.insist(this.id, () =>
      this.#commands.take(this.generation, this.#core.id, max, op, this.#answered),
    );
    this.#answered = op;
    if (taken === 'gone') return this.#end(undefined);
    if (taken === 'lost') return this.#lose('the lease was withdrawn');
    // Sent twice: what came with the first reply, if anything did, is with us and unknown.
    if (taken.left < 0) return this.#returnUnknown();
    // None left: the next round reads new ones.
    this.#dueNow = taken.left;
    this.#startUpTo(taken.entries);
    this.#account();
  }

  #apply(settled: Settled): void {
    this.#replies += 1;
    this.#permits = settled.permits;
    if (this.#permits === 0) this.#outcomes.doubt();
    this.#place = { priority: settled.priority, due: settled.due };
    this.#dueNow = settled.dueNow;
    if (this.#soonest < Number.POSITIVE_INFINITY) {
      this.shard.lookWithin(this.#soonest + SLACK_MS);
      this.#soonest = Number.POSITIVE_INFINITY;
    }
    if (settled.nextDue > 0 && settled.nextDue !== this.#noted) {
      this.#noted = settled.nextDue;
      this.#note(settled.nextDue);
    }
  }

  /** Starts what was read up to the permits in hand, `most` at most; the rest goes back unstarted. */
  #startUpTo(entries: readonly Entry[], most = entries.length): void {
    const end = this.#busy + most;
    // It may have been told to leave while the read was under way, or its process stood still.
    const mayStart = () => this.#mode === 'working' && this.#busy < Math.min(this.#permits, end);
    this.fence();
    // Claimed first: this session leaves with all others, and what came along goes back.
    const wait = this.#claim(entries, Math.min(this.#permits, end) - this.#busy);
    for (const entry of entries) {
      if (wait.has(entry)) continue;
      // A server that lost writes may bring what runs here already.
      if (this.#running.has(entry.entry)) continue;
      const now = this.fence();
      if (!entry.suspect && mayStart()) this.#start(entry, now);
      else this.#outcomes.push({ entry: entry.entry, kind: 'b' });
    }
  }

  /** The suspects among these that are to run here, up to `room`: alone with each other. */
  #claim(entries: readonly Entry[], room: number): ReadonlySet<Entry> {
    const { alone, closing } = this.#core;
    // Others may have claimed the process while these were asked for, and made this one leave.
    const may = this.#mode === 'working' || (alone.clearing && !closing && !this.shard.paused);
    if (room <= 0 || !may || !entries.some(({ suspect }) => suspect)) return NOBODY;
    const suspects = entries.filter(({ suspect }) => suspect);
    const admitted = alone.claim(this, suspects.slice(0, room), {
      run: (company) => this.#runAlone(company),
      giveBack: (waitedMs) => this.#passOn(waitedMs),
    });
    this.#suspects = [...this.#suspects, ...admitted];
    return new Set(admitted);
  }

  /** Gives suspects back that have waited in vain for what runs here to end. */
  #passOn(waitedMs: number): void {
    if (this.#suspects.length === 0) return;
    this.#log.passedOn(this.#suspects, waitedMs);
    this.#returnSuspects();
    this.#passesOn = true;
    this.leave();
  }

  /** Starts the suspects; nothing else runs in this process, and the server is told so first. */
  #runAlone(company: number): void {
    this.#exclusive(async () => {
      const suspects = this.#suspects;
      if (suspects.length === 0) return;
      const entries = suspects.map(({ entry }) => entry);
      const admitted = await this.#core.insist(this.id, () =>
        this.#commands.runAlone(this.generation, this.#core.id, company, entries),
      );
      if (admitted.verdict === 'gone') return this.#end(undefined);
      if (admitted.verdict === 'lost') return this.#lose('the lease was withdrawn');
      const { ends } = admitted;
      // Before they run: if they end this process, somebody looks as soon as its lease is over.
      await this.#core.insist(this.id, () => this.shard.queue.note(this.id, this.generation, ends));
      // They may have been given back meanwhile, or came back after a freeze.
      this.fence();
      if (this.#suspects !== suspects) return;
      this.#suspects = [];
      for (const suspect of suspects) this.#start(suspect, performance.now());
    });
  }

  #returnSuspects(): void {
    if (this.#suspects.length === 0) return;
    for (const { entry } of this.#suspects) this.#outcomes.push({ entry, kind: 'b' });
    this.#suspects = [];
    this.#core.alone.end(this);
  }

  /** When the suspects are settled, the process takes work again. */
  #goOn(): void {
    const left = this.#busy + this.#zombies.size + this.#outcomes.size;
    if (left === 0) this.#core.alone.end(this);
  }

  #start(entry: Entry, now: number): void {
    const handler = this.#core.handlers.for(this.#task);
    if (!handler) throw new Error(`no handler for task ${this.#task}`);
    const running = new Attempt(this.id, entry, now, this.#terms, this.#parts);
    this.#running.set(entry.entry, running);
    this.#core.running += 1;
    if (this.#terms.timeoutMs > 0) this.#holding.runsFor(this.#terms.timeoutMs);
    this.#log.started(running);
    running.run(handler, entry.payload, this.#onEnd, this.#onTimeout);
  }

  readonly #hold = async (ms: number): Promise<void> => {
    const held = await this.#core.insist(this.id, () => this.#control.hold(this.generation, ms));
    if (held.verdict !== 'held') return;
    const { until } = held;
    this.#note(until);
    this.shard.lookWithin(ms + SLACK_MS);
  };

  readonly #onEnd = (running: Attempt, outcome: Outcome | undefined): void => {
    this.#core.running -= 1;
    const wanted = this.#running.get(running.entry) === running;
    if (wanted) this.#running.delete(running.entry);
    if (this.#zombies.delete(running) || wanted) {
      if (outcome) this.#report(running, outcome);
      if (!wanted) this.#outcomes.doubt();
      this.#kick();
    } else {
      this.#core.alone.look();
    }
  };

  /** The attempt is over, its permit free; the slot is when the handler has really ended. */
  readonly #onTimeout = (running: Attempt, outcome: Outcome): void => {
    if (this.#running.get(running.entry) !== running) return;
    this.#log.overTime(running);
    this.#running.delete(running.entry);
    this.#leaveSlot(running);
    this.#report(running, outcome);
    this.#kick();
  };

  /** To a handler that was told to stop, until it has ended. */
  #leaveSlot(running: Attempt): void {
    const { slots } = this.shard;
    slots.take(1);
    void running.ended.then(() => slots.take(-1));
    this.#core.leftovers.note(running.ended, () => this.#log.goesOn(running));
  }

  /** What came of an attempt, however it ended, and what goes with it. */
  #report(running: Attempt, outcome: Outcome): void {
    this.#outcomes.push(outcome);
    if (this.#core.handlers.pulled) this.#listeners.add(outcome, running);
    if (this.#core.events.heard('settled')) this.#heard.set(outcome.entry, running.attempt);
    this.#weigh(running, outcome);
    if (outcome.kind === 's') this.#usual.note(running.startedAt);
    this.#log.reported(
      running,
      outcome,
      outcome.kind === 'f' && this.#isFinal(running.attempt, outcome),
    );
    if (outcome.kind !== 's') this.#lastCheckpoints.add(running);
    if (outcome.kind === 'f') this.shard.errors.note(running, outcome.value);
    if (outcome.kind === 'f' && outcome.delayMs > 0)
      this.#soonest = Math.min(this.#soonest, outcome.delayMs);
  }

  /** What settling it takes of the server's memory, and gives back. */
  #weigh(running: Attempt, outcome: Outcome): void {
    if (outcome.kind === 'b') return;
    const { length } = outcome.value;
    this.#memory.settled(length);
    if (outcome.kind === 's') this.#growth.note(running.size, length);
    else if (this.#isFinal(running.attempt, outcome)) this.#growth.note(running.size, 0, length);
  }

  #minted(mint: number, epoch: number): Minted {
    return { id: this.id, generation: this.generation, mint, epoch, ...this.#place };
  }

  #end(complete: Complete | undefined): void {
    this.#mode = 'over';
    this.#permits = 0;
    this.#outcomes.clear();
    this.#listeners.end();
    this.#lastCheckpoints.clear();
    this.#heard.clear();
    this.#suspects = [];
    this.#letGo('the request ended');
    this.#core.waitingRoom.delete(this.id);
    if (!complete) return;
    const epoch = this.#epoch;
    const over = { ...complete, generation: this.generation };
    this.#core.later(this.id, () => tellOver(epoch, this.shard.queue, this.#commands, over));
  }

  /** Aborts all handlers and forgets them; each keeps its slot until it really ended. */
  #letGo(why: string): void {
    const left = [...this.#running.values(), ...this.#zombies];
    for (const running of left) {
      running.abort('abandoned', why);
      running.tell('returned');
      this.#leaveSlot(running);
    }
    void Promise.all(left.map(({ ended }) => ended)).then(() => this.#core.alone.end(this));
    this.#running.clear();
    this.#zombies.clear();
    this.#account();
  }

  #account(): void {
    const holds = Math.max(this.#permits, this.#busy) + this.#zombies.size + this.#reserved;
    if (holds !== this.#held) this.shard.slots.take(holds - this.#held);
    this.#held = holds;
    this.#holding.set(this.#permits > 0);
  }

  /** Pumps once everything that ends in this turn of the event loop has ended. */
  #kick(): void {
    if (this.#kicked || this.#mode === 'over') return;
    this.#kicked = true;
    setImmediate(() => {
      this.#kicked = false;
      this.#exclusive(() => this.#pump());
    });
  }

  #exclusive(work: () => Promise<void>): void {
    this.#queued += 1;
    this.#tail = this.#tail
      .then(work)
      .catch((error: unknown) => {
        const { logger, ended } = this.#core;
        const about = { err: error, requestId: this.id };
        if (ended) logger.warn(about, 'session cut off by the close');
        else logger.error(about, 'session failed');
        if (!ended) this.#core.events.tellError(error, { requestId: this.id });
        this.#end(undefined);
      })
      .then(() => {
        this.#queued -= 1;
        this.#account();
        if (this.#queued > 0) return;
        const working = this.#permits + this.#busy + this.#zombies.size;
        if (working + this.#outcomes.size === 0) this.#mode = 'over';
        if (this.#mode === 'over') {
          this.#log.ended();
          this.#onOver(this);
        }
        this.#core.alone.look();
      });
  }
}
