import type { NoIdQueue, PulledId } from '@piecework/protocol';

/**
 * What a pull found.
 * - READY: the task is yours until `stamp` + `timeoutMs` of the queue; `key` is what you report, as it is. A key has no
 *   meaning of its own. `attempt` counts from 1; with TIMEDOUT it is the attempt whose time ran out.
 * - TIMEDOUT: its time ran out in another's hands; `resume(key)` makes it yours, if you are the first.
 * - PROCESSING: everything that is left is in others' hands.
 * - NONE: nothing is there.
 *
 * `stamp` is the server's time of the answer, in ms since 1970.
 */
export type IdReference =
  | TaskReference<'READY'>
  | TaskReference<'TIMEDOUT'>
  | NoReference<'PROCESSING'>
  | NoReference<'NONE'>;

export interface TaskReference<State> {
  readonly state: State;
  readonly id: string;
  readonly key: string;
  readonly attempt: number;
  readonly stamp: number;
}

export interface NoReference<State> {
  readonly state: State;
  readonly id?: undefined;
  readonly key?: undefined;
  readonly stamp: number;
}

/** Attempts of one task count from a number drawn by its pull, 32 · d + 1 (lua/id-pull.lua). */
const ATTEMPTS_OF_A_TASK = 32;

export function referenceOf(pulled: Exclude<PulledId, NoIdQueue>): IdReference {
  if (pulled.verdict === 'processing') return { state: 'PROCESSING', stamp: pulled.at };
  if (pulled.verdict === 'none') return { state: 'NONE', stamp: pulled.at };
  const { verdict, number, attempt, id, at } = pulled;
  const counted = ((attempt - 1) % ATTEMPTS_OF_A_TASK) + 1;
  const task = { id, key: `${number}-${attempt}`, attempt: counted, stamp: at };
  return { state: verdict === 'ready' ? 'READY' : 'TIMEDOUT', ...task };
}
