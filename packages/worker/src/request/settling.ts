import { decodeError, indexOf, type Outcome } from '@piecework/protocol';
import type { Shard } from '../fetch/shard.js';
import type { Attempt } from '../handler/attempt.js';
import { LastCheckpoints } from '../handler/checkpoints.js';
import { Listeners } from '../pull/listeners.js';
import type { RunLog } from '../report/run-log.js';
import type { Usual } from '../shared/usual.js';
import type { WorkerContext } from '../shared/worker-context.js';
import type { Attempts } from './attempts.js';
import type { MemoryRoom } from './memory-room.js';
import { Outcomes } from './outcomes.js';
import type { SessionCalls, SettleReply } from './session-calls.js';

/**
 * What follows the end of an attempt until the server has its outcome: the outcomes that wait to be settled, the
 * checkpoints that have to be sent first, and those who are notified of the answer.
 */
export class Settling {
  readonly outcomes = new Outcomes();
  readonly #context: WorkerContext;
  readonly #requestId: string;
  readonly #shard: Shard;
  readonly #calls: SessionCalls;
  readonly #attempts: Attempts;
  readonly #room: MemoryRoom;
  readonly #usual: Usual;
  readonly #log: RunLog;
  /** Consumers that pulled, and wait for the answer to their outcomes. */
  readonly #listeners = new Listeners();
  readonly #lastCheckpoints = new LastCheckpoints();
  /** The attempt number of each unsettled outcome, by entry; kept only while somebody listens for 'settled'. */
  readonly #numbers = new Map<string, number>();
  /** Entries of unsettled failures after which no attempt follows. */
  readonly #final = new Set<string>();
  /** When the next retry is due, as far as the agenda knows. */
  #nextDue = 0;

  constructor(
    context: WorkerContext,
    session: {
      readonly requestId: string;
      readonly shard: Shard;
      readonly calls: SessionCalls;
      readonly attempts: Attempts;
      readonly room: MemoryRoom;
      readonly usual: Usual;
      readonly log: RunLog;
    },
  ) {
    this.#context = context;
    this.#requestId = session.requestId;
    this.#shard = session.shard;
    this.#calls = session.calls;
    this.#attempts = session.attempts;
    this.#room = session.room;
    this.#usual = session.usual;
    this.#log = session.log;
  }

  /** What an attempt came to, however it ended. */
  report(attempt: Attempt, outcome: Outcome): void {
    const isFailure = outcome.kind === 'f';
    const isFinal = isFailure && this.#attempts.isFinal(attempt.attempt, outcome);
    this.outcomes.push(outcome);
    if (this.#context.handlers.pulled) this.#listeners.add(outcome, attempt);
    if (this.#context.events.heard('settled')) this.#numbers.set(outcome.entry, attempt.attempt);
    this.#room.note(attempt, outcome, isFinal);
    if (outcome.kind === 's') {
      this.#usual.note(attempt.startedAt);
      this.#context.lately.note(attempt.startedAt);
    }
    this.#log.reported(attempt, outcome, isFinal);
    if (outcome.kind !== 's') this.#lastCheckpoints.add(attempt);
    if (!isFailure) return;
    if (isFinal) this.#final.add(outcome.entry);
    this.#shard.errors.note(attempt, outcome.value);
  }

  /** Gives an entry back unfinished; no attempt is counted. `cost`: of what ran of it. */
  giveBack(entry: string, cost?: string): void {
    this.outcomes.push({ entry, kind: 'b', ...(cost && { cost }) });
  }

  /** Gives back what runs, before it is abandoned. */
  giveBackRunning(): void {
    for (const attempt of this.#attempts.running()) {
      this.#lastCheckpoints.add(attempt);
      this.giveBack(attempt.entry, attempt.costText(0));
    }
  }

  /** Whether checkpoints have to be sent before anything is settled. */
  get owesCheckpoints(): boolean {
    return this.#lastCheckpoints.size > 0;
  }

  sendCheckpoints(): Promise<void> {
    return this.#lastCheckpoints.send((reports) => this.#calls.insistOnRenew(reports));
  }

  /** The server has answered a settle of these, sent at `sentAt`, as performance.now(). */
  answered(outcomes: readonly Outcome[], settled: SettleReply, sentAt: number): void {
    this.#log.settled(sentAt);
    // An enter, or a settle of nothing, only learns that a request was completed before.
    if (settled.verdict === 'complete' && outcomes.length > 0) this.#log.completed(settled.outcome);
    const taken = settled.verdict !== 'gone';
    this.#listeners.notify(outcomes, taken);
    // What a request returns with its last settle, or while it is being cancelled, counts as cancelled.
    if (taken) this.#count(outcomes, settled.verdict === 'complete' || settled.cancelling);
    if (taken && this.#numbers.size > 0) this.#emitSettled(outcomes);
  }

  /** Has the request tended at `nextDue`, server time, when a delayed attempt of it is due; 0: none is delayed. */
  scheduleRetries(nextDue: number): void {
    if (nextDue === 0 || nextDue === this.#nextDue) return;
    this.#nextDue = nextDue;
    this.#calls.scheduleTend(nextDue);
  }

  /** The request has ended: nothing of it is settled any more. */
  clear(): void {
    this.outcomes.clear();
    this.#listeners.end();
    this.#lastCheckpoints.clear();
    this.#numbers.clear();
    this.#final.clear();
  }

  /** For the history of the queue. The agenda ticks when a failure is due for its next attempt. */
  #count(outcomes: readonly Outcome[], cancelsReturned: boolean): void {
    const { figures } = this.#shard;
    let succeeded = 0;
    for (const outcome of outcomes) {
      const { kind } = outcome;
      if (kind === 's') succeeded += 1;
      else if (kind === 'f') {
        const isFinal = this.#final.delete(outcome.entry);
        // cure: the agenda ticks for each retry
        if (!isFinal && outcome.delayMs > 0) this.#shard.tickWithin(outcome.delayMs);
        figures.note(this.#attempts.cancelled ? 'cancelled' : isFinal ? 'failed' : 'retried');
      } else if (cancelsReturned) figures.note('cancelled');
    }
    figures.note('succeeded', succeeded);
  }

  #emitSettled(outcomes: readonly Outcome[]): void {
    const { events } = this.#context;
    for (const outcome of outcomes) {
      const attempt = this.#numbers.get(outcome.entry);
      if (attempt === undefined) continue;
      this.#numbers.delete(outcome.entry);
      const requestId = this.#requestId;
      const index = indexOf(outcome.entry);
      if (outcome.kind === 's')
        events.emit('settled', { requestId, index, attempt, status: 'succeeded' });
      // Otherwise another attempt follows.
      else if (outcome.kind === 'f' && this.#attempts.isFinal(attempt, outcome))
        events.emit('settled', {
          requestId,
          index,
          attempt,
          status: 'failed',
          error: decodeError(outcome.value),
        });
    }
  }
}
