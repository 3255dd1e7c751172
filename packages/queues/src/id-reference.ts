import type { NoIdQueue, PulledId } from '@piecework/protocol';

/**
 * What a pull found.
 * - READY: the task is yours until `stamp` + `timeoutMs` of the queue; `key` is what you report, as it is.
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
  readonly stamp: number;
}

export interface NoReference<State> {
  readonly state: State;
  readonly id?: undefined;
  readonly key?: undefined;
  readonly stamp: number;
}

export function referenceOf(pulled: Exclude<PulledId, NoIdQueue>): IdReference {
  if (pulled.verdict === 'processing') return { state: 'PROCESSING', stamp: pulled.at };
  if (pulled.verdict === 'none') return { state: 'NONE', stamp: pulled.at };
  const { verdict, number, attempt, id, at } = pulled;
  const task = { id, key: `${number}-${attempt}`, stamp: at };
  return { state: verdict === 'ready' ? 'READY' : 'TIMEDOUT', ...task };
}
