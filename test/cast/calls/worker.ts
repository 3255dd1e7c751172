import { type Entry, parseToken } from '@piecework/protocol';
import { freshName, LEASE_MS, type Scene } from '../../support/given.js';
import { Actor, type Call, call, type Surroundings } from './actor.js';
import { Session } from './session.js';

/** A failed sub-request is tried again after so long, or at once. */
const RETRY_MS = 4_000;

/**
 * The smallest worker that keeps to the protocol. It is free in all that the protocol leaves open: which session is
 * next, when a handler ends and how, when it renews, compares, leaves. So it makes calls in orders in which the
 * worker of packages/worker never makes them.
 */
export class Worker extends Actor {
  readonly name = freshName('w');
  readonly sessions = new Map<string, Session>();
  readonly #slots: number;
  #op = 0;
  /** The session of a suspect that runs: nothing else is taken meanwhile. */
  #isolated: Session | undefined;
  /** For so many more turns it does not check its clock, as a process that stands still. */
  frozen = 0;

  constructor(around: Surroundings, slots: number) {
    super(around);
    this.#slots = slots;
  }

  get idle(): boolean {
    return this.todo.length === 0 && this.sessions.size === 0;
  }

  /** Stops believing in leases that ended by its own clock. */
  fence(): void {
    for (const session of this.sessions.values())
      if (this.around.time >= session.leaseEnds) session.loseLease();
  }

  /** What it runs of a request under a lease that is valid by its own clock and by the server's. */
  valid(scene: Scene): string[] {
    const entries: string[] = [];
    for (const session of this.sessions.values()) {
      const valid = this.around.time < session.leaseEnds && !session.doubtful;
      if (session.scene === scene && valid) entries.push(...session.running);
    }
    return entries;
  }

  override die(): void {
    super.die();
    this.sessions.clear();
  }

  get #freeSlots(): number {
    let used = 0;
    for (const { permits, busy } of this.sessions.values()) used += Math.max(permits, busy);
    return this.#slots - used;
  }

  /** The session that waits for a suspect or runs one. */
  get #isolation(): Session | undefined {
    const sessions = [...this.sessions.values()];
    return sessions.find((one) => one.suspect !== undefined || one === this.#isolated);
  }

  protected choose(what: number): Call | undefined {
    for (const [key, session] of this.sessions) if (session.ended) this.sessions.delete(key);
    if (!this.#isolated?.unsettled) this.#isolated = undefined;
    const isolated = this.#runIsolated();
    if (isolated) return isolated;
    const sessions = [...this.sessions.values()];
    const session = sessions[what % Math.max(1, sessions.length)];
    if (!session) return this.#pop();
    switch (what % 10) {
      case 0:
        return this.#pop() ?? this.#work(session);
      case 1:
        return this.#renew(session);
      case 2:
        return this.#compare(session);
      case 3:
        session.leaving = true;
        return this.#work(session);
      case 4:
        this.#endOne(session, what);
        this.#endOne(session, what + 1);
        return this.#work(session);
      default:
        if (session.spare === 0) this.#endOne(session, what);
        return this.#work(session);
    }
  }

  /** A handler ends. */
  #endOne(session: Session, what: number): void {
    const [outlived] = session.outlived;
    if (outlived !== undefined && what % 3 === 0) {
      session.outlived.delete(outlived);
      if (what % 2 === 0) session.outcomes.push({ entry: outlived, kind: 's', value: this.name });
      return;
    }
    const entry = [...session.running][what % Math.max(1, session.running.size)];
    if (entry === undefined) return;
    session.running.delete(entry);
    const chance = this.around.healing ? 0 : what % 7;
    if (chance < 4) session.outcomes.push({ entry, kind: 's', value: this.name });
    else if (chance === 4) session.outcomes.push({ entry, kind: 'b' });
    else {
      this.around.runs.ofEntry(session.scene.id, entry).failed += 1;
      const delayMs = chance === 5 ? 0 : RETRY_MS;
      session.outcomes.push({ entry, kind: 'f', value: '{}', delayMs });
    }
  }

  /** Takes, settles or reads, whatever there is to do. */
  #work(session: Session): Call | undefined {
    if (this.#isolation) session.leaving = true;
    if (!session.leaving && session.dueNow > 0 && session.spare > 0) return this.#take(session);
    return this.#settle(session);
  }

  #take(session: Session): Call {
    const { scene, generation } = session;
    const max = session.spare;
    return call(
      'take',
      () => scene.request.take(generation, this.name, max),
      (taken) => {
        if (taken === 'gone') this.#forget(session);
        else if (taken === 'lost') session.loseLease();
        else {
          session.dueNow = taken.left;
          this.#start(session, taken.entries);
        }
      },
    );
  }

  #settle(session: Session): Call | undefined {
    const { scene, generation } = session;
    const keep = session.leaving ? session.busy : session.permits;
    const read = session.leaving ? 0 : session.spare;
    if (session.outcomes.length + read === 0 && keep >= session.permits) return undefined;
    const outcomes = session.outcomes.splice(0);
    const running = session.busy;
    const sentAt = this.around.time;
    this.#op += 1;
    const numbers = { op: this.#op, leaseMs: LEASE_MS, keep, running, read };
    return call(
      'settle',
      () => scene.request.settle(generation, this.name, numbers, outcomes),
      ({ settled, entries, unsure }) => {
        if (settled.verdict !== 'ok') {
          if (settled.verdict === 'complete') this.finish(scene, generation, settled.outcome);
          this.#forget(session);
          return;
        }
        // Fewer permits than what runs: the lease was lost before this call.
        if (settled.permits < session.busy) session.loseLease();
        session.permits = settled.permits;
        session.confirmLease(sentAt + LEASE_MS);
        session.dueNow = settled.dueNow;
        this.#start(session, entries);
        const room = Math.min(read, settled.permits - running);
        if (entries.length < room && settled.dueNow === 0 && !unsure) session.leaving = true;
        this.push(scene, { generation, ...settled });
        if (settled.nextDue > 0 && settled.nextDue !== session.tendAt) {
          session.tendAt = settled.nextDue;
          this.scheduleTend(scene, generation, settled.nextDue);
        }
      },
    );
  }

  /** Starts what it was given. What finds no permit, or comes beside a suspect, it gives back. */
  #start(session: Session, entries: readonly Entry[]): void {
    const free = () => session.spare > 0 && !this.#isolation;
    const suspect = entries.find((one) => one.suspect && free())?.entry;
    if (suspect !== undefined) session.suspect = suspect;
    for (const { entry, suspect: isSuspect } of entries) {
      if (entry === suspect) continue;
      if (free() && !isSuspect) this.#begin(session, entry);
      else session.outcomes.push({ entry, kind: 'b' });
    }
  }

  #begin(session: Session, entry: string): void {
    session.running.add(entry);
    this.around.runs.ofEntry(session.scene.id, entry).began += 1;
  }

  /** Notes with the server that the suspect runs now, once nothing else does. */
  #runIsolated(): Call | undefined {
    const session = this.#isolation;
    const { suspect } = session ?? {};
    if (!session || suspect === undefined) return undefined;
    for (const other of this.sessions.values())
      if (other.unsettled || other.permits > other.busy) return undefined;
    // It may die of it before it receives the answer.
    this.around.runs.ofEntry(session.scene.id, suspect).isolated = true;
    return call(
      'run-alone',
      () => session.scene.request.runAlone(session.generation, this.name, 1, [suspect]),
      ({ verdict }) => {
        if (session.suspect !== suspect) return;
        if (verdict === 'gone') return this.#forget(session);
        if (verdict === 'lost') return session.loseLease();
        session.suspect = undefined;
        this.#isolated = session;
        this.#begin(session, suspect);
      },
    );
  }

  #forget(session: Session): void {
    for (const [key, other] of this.sessions) if (other === session) this.sessions.delete(key);
  }

  #pop(): Call | undefined {
    const want = this.#freeSlots;
    if (want <= 0 || this.#isolation) return undefined;
    const { connection, queue } = this.around.scenes[0] as Scene;
    const { lists } = queue.keys;
    return call(
      'pop',
      async () =>
        (await connection.client.call('lmpop', lists.length, ...lists, 'RIGHT', 'COUNT', want)) as
          | [string, string[]]
          | null,
      (popped) => {
        const epochsOf = new Map<string, string[]>();
        for (const token of popped?.[1] ?? []) {
          const { id, generation, epoch } = parseToken(token);
          const key = `${id} ${generation}`;
          epochsOf.set(key, [...(epochsOf.get(key) ?? []), epoch]);
        }
        for (const [key, epochs] of epochsOf) {
          const [id, generation] = key.split(' ') as [string, string];
          const scene = this.around.scenes.find((one) => one.id === id) as Scene;
          this.todo.push(() => this.#enter(scene, Number(generation), epochs));
        }
      },
    );
  }

  #enter(scene: Scene, generation: number, epochs: string[]): Call {
    this.#op += 1;
    const free = this.#isolation ? 0 : Math.max(0, this.#freeSlots);
    const [op, want, sentAt] = [this.#op, Math.min(epochs.length, free), this.around.time];
    const worker = this.name;
    return call(
      'enter',
      () =>
        scene.request.enter({
          ...{ generation, worker, op, want, leaseMs: LEASE_MS, tasks: '*', epochs },
        }),
      (entered) => {
        const key = `${scene.id} ${generation}`;
        if (entered.verdict === 'complete') this.finish(scene, generation, entered.outcome);
        if (entered.verdict !== 'ok') {
          this.sessions.delete(key);
          return;
        }
        this.push(scene, { generation, ...entered });
        const session = this.sessions.get(key) ?? new Session(scene, generation);
        // Permits may have been withdrawn and granted anew in between. The reply is the same then, so its own
        // clock decides, which it checks again now that the reply is here.
        if (this.around.time >= session.leaseEnds || entered.permits < session.busy)
          session.loseLease();
        session.permits = entered.permits;
        session.confirmLease(sentAt + LEASE_MS);
        session.dueNow = entered.dueNow;
        session.leaving = entered.permits === 0 || this.#isolation !== undefined;
        this.sessions.set(key, session);
      },
    );
  }

  #renew(session: Session): Call | undefined {
    if (session.permits === 0) return undefined;
    const sentAt = this.around.time;
    return call(
      'renew',
      () => session.scene.request.renew(session.generation, this.name, LEASE_MS, []),
      (renewed) => {
        if (renewed.verdict === 'ok' && renewed.permits >= session.busy) {
          session.confirmLease(sentAt + LEASE_MS);
        } else session.loseLease();
      },
    );
  }

  /** Compares what the server has it own with what it runs, and gives back what it does not know. */
  #compare(session: Session): Call {
    const { request, connection } = session.scene;
    return call(
      'compare',
      () =>
        connection.client
          .xpending(request.keys.work, 'workers', '-', '+', 100, this.name)
          .catch(() => []),
      (pending) => {
        const known = new Set([
          ...session.running,
          ...(session.suspect === undefined ? [] : [session.suspect]),
          ...session.outlived,
          ...session.outcomes.map(({ entry }) => entry),
        ]);
        for (const [entry] of pending as [string][])
          if (!known.has(entry)) session.outcomes.push({ entry, kind: 'b' });
      },
    );
  }
}
