import type { NoIdQueue, PulledId } from '@piecework/protocol';

/**
 * The answer to a pull.
 * - `ready`: the item is yours until `stamp` + `timeoutMs` of the queue. Pass `key`, unchanged, to `done` or `fail`.
 *   `attempt` counts from 1.
 * - `timed-out`: another consumer had the item and did not finish in time. The first `resume(key)` takes it over.
 *   `attempt` is the one whose time ran out.
 * - `processing`: nothing is pending; other consumers work on what is left.
 * - `none`: the queue is empty.
 *
 * `stamp` is the server's time of the answer, in ms since 1970.
 */
export type IdReference =
  | ItemReference<'ready'>
  | ItemReference<'timed-out'>
  | NoReference<'processing'>
  | NoReference<'none'>;

export interface ItemReference<State> {
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

/** Each pull draws a number d; the attempts of its item count from 32 · d + 1 (lua/id-pull.lua). */
const ATTEMPTS_OF_AN_ITEM = 32;

export function referenceOf(pulled: Exclude<PulledId, NoIdQueue>): IdReference {
  if (pulled.verdict === 'processing') return { state: 'processing', stamp: pulled.at };
  if (pulled.verdict === 'none') return { state: 'none', stamp: pulled.at };
  const { verdict, number, attempt, id, at } = pulled;
  const counted = ((attempt - 1) % ATTEMPTS_OF_AN_ITEM) + 1;
  const item = { id, key: `${number}-${attempt}`, attempt: counted, stamp: at };
  return { state: verdict === 'ready' ? 'ready' : 'timed-out', ...item };
}
