import { type Contention, type Expedited, goesBefore, type Place } from '@piecework/protocol';
import type { WaitingRoom } from '../shared/waiting-room.js';
import type { Pace } from './pace.js';

/** Whether other requests wait at the server, and whether one of them goes before this one. */
export type AskContention = (priority: number, expedited?: Expedited) => Promise<Contention>;

/** A slice lasts as long as so many handlers, one after the other: to change requests costs some calls. */
const HANDLERS = 10;
/** Longest slice, and longest time between two questions, in time slices of the option. */
const LONGEST = 20;
const SELDOM = 4;
/** After about so many sub-requests of this session, a question makes none of them much more expensive. */
const QUESTION_EACH = 32;

/** The request that a session works on. */
interface Subject {
  readonly id: string;
  readonly generation: number;
  readonly place: Place;
}

/**
 * The time for which a session works before it leaves its slots to others. Requests of the same priority take turns:
 * a turn lasts several handlers. One that goes before this one does not wait for that. The session asks who waits
 * before it leaves, because the most frequent answer by far is that nobody does, and asking costs one call.
 */
export class TimeSlice {
  readonly #waitingRoom: WaitingRoom;
  readonly #quantumMs: number;
  readonly #pace: Pace;
  readonly #of: () => Subject;
  readonly #ask: AskContention;
  readonly #passesOn: () => boolean;
  #startedAt = 0;
  #askAt = 0;
  /** Whether equals waited when it asked last in this turn; undefined: it did not ask yet. */
  #hasEquals: boolean | undefined;

  constructor(
    { waitingRoom, quantumMs }: { waitingRoom: WaitingRoom; quantumMs: number },
    pace: Pace,
    of: () => Subject,
    ask: AskContention,
    passesOn: () => boolean,
  ) {
    this.#waitingRoom = waitingRoom;
    this.#quantumMs = quantumMs;
    this.#pace = pace;
    this.#of = of;
    this.#ask = ask;
    this.#passesOn = passesOn;
  }

  /** As performance.now(). */
  get startedAt(): number {
    return this.#startedAt;
  }

  /** Returns the time at which it begins, as performance.now(). */
  begin(): number {
    this.#startedAt = performance.now();
    this.#askAt = this.#startedAt + this.#questionMs;
    this.#hasEquals = undefined;
    return this.#startedAt;
  }

  /** Whether it is time to ask who waits. */
  get hasToAsk(): boolean {
    return performance.now() >= this.#askAt;
  }

  /**
   * Whether it is time to ask, and it ends if equals wait: nothing more is read before that is known. Other questions
   * share the write of a settle, also the next one after nobody waited.
   */
  get mayEnd(): boolean {
    const isOver = performance.now() >= this.#startedAt + this.#lengthMs;
    return isOver && this.#hasEquals !== false && this.hasToAsk;
  }

  /** Who is to have the slots now: one that goes before this request ('leave'), an equal ('share'), or it itself. */
  async whoIsNext(): Promise<Contention> {
    const endsAt = this.#startedAt + this.#lengthMs;
    // Whoever passes its slots on learns there whether anybody waits.
    if (this.#hasEquals && performance.now() >= endsAt && this.#passesOn()) return 'share';
    const contention = await this.#contention(this.#of());
    this.#hasEquals = contention === 'share';
    const now = performance.now();
    // cure: equals take turns
    if (contention === 'leave' || (contention === 'share' && now >= endsAt)) return contention;
    const next = now + this.#questionMs;
    this.#askAt = contention === 'share' ? Math.min(next, Math.max(now, endsAt)) : next;
    return 'keep';
  }

  async #contention({ id, generation, place }: Subject): Promise<Contention> {
    const here = this.#waitingRoom.next(place, id);
    if (here && goesBefore(here, place)) return 'leave';
    const { priority, due } = place;
    const there = await this.#ask(priority, due ? { due, generation } : undefined);
    return here && there === 'keep' ? 'share' : there;
  }

  get #lengthMs(): number {
    const handlersMs = this.#pace.handlersMs(HANDLERS) ?? 0;
    return Math.min(Math.max(this.#quantumMs, handlersMs), LONGEST * this.#quantumMs);
  }

  get #questionMs(): number {
    const eachMs = QUESTION_EACH * this.#pace.intervalMs;
    return Math.min(Math.max(this.#quantumMs, eachMs), SELDOM * this.#quantumMs);
  }
}
