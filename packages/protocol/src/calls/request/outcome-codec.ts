import { NO_COST } from '../../contract/cost.js';
import { indexOf } from '../../contract/keys.js';
import type { Argument } from '../../redis/client.js';
import { LONG_TEXT } from '../../redis/long-text.js';
import type { Arguments } from '../../scripts/run-script.js';
import type { StreamRow } from '../../scripts/script-values.js';

/*
 * How sub-requests and their outcomes are encoded between a worker, `settle`, the streams and a reader of results.
 */

/** A sub-request as a worker receives it. */
export interface Entry {
  readonly entry: string;
  readonly index: number;
  readonly payload: string;
  /** Failed attempts so far. */
  readonly tries: number;
  /** How often a worker ended while it owned this sub-request. */
  readonly crashes: number;
  /** Whether its next crash may be its last: then it runs with few others or isolated, after `runAlone`. */
  readonly suspect: boolean;
  /**
   * How many handlers ran in its process, its own included, when it last ran as a suspect; 0 or absent: it never did.
   */
  readonly company?: number;
  /** JSON of the last checkpoint of an earlier attempt; '' or absent: none. */
  readonly checkpoint?: string;
}

/** What a worker reports of one sub-request: succeeded, failed, or given back; and what the attempt cost (`costText`). */
export type Outcome = { readonly entry: string; readonly cost?: string } & (
  | { readonly kind: 's'; readonly value: string }
  /** `delayMs`: before the next attempt, if any is left; -1: no further attempt. */
  | {
      readonly kind: 'f';
      readonly value: string;
      readonly delayMs: number;
      /** Length of its payload, which is stored with the failure. */
      readonly payload?: number;
    }
  | { readonly kind: 'b' }
);

/** One outcome of the results stream. `attempts` is set for failed ones. */
export interface ResultRecord {
  readonly index: number;
  readonly failed: boolean;
  readonly value: string;
}

/** A record of the results stream: what one `settle` recorded. */
export interface ResultsEntry {
  /** `<generation>-<number>`, rising. */
  readonly position: string;
  readonly records: readonly ResultRecord[];
}

/** Separates several values in one text: JSON always escapes this character. */
const SEPARATOR = '\x1e';

/**
 * Outcomes as the arguments of `settle`: successes first, with all their results in one text. `cut`: where the index
 * begins in an entry.
 */
export function reportOf(
  all: readonly Outcome[],
  cut: number,
): Pick<
  Arguments<'settle'>['settling'][number],
  'successes' | 'newest' | 'values' | 'costs' | 'outcomes'
> {
  const outcomes: Argument[] = [];
  const costs: string[] = [];
  let newest = -1;
  const results = new Joined();
  for (const outcome of all) {
    const index = outcome.entry.slice(cut);
    newest = Math.max(newest, Number(index));
    if (outcome.kind !== 's') continue;
    outcomes.push(outcome.entry);
    costs.push(costOf(outcome));
    results.add(`${SEPARATOR}${index} ${outcome.value}`);
  }
  const successes = outcomes.length;
  for (const outcome of successes === all.length ? [] : all) {
    if (outcome.kind === 's') continue;
    const [value, number] = outcome.kind === 'f' ? [outcome.value, outcome.delayMs] : ['', 0];
    outcomes.push(outcome.entry.slice(cut), outcome.kind, value, number);
    costs.push(costOf(outcome));
  }
  return { successes, newest, values: results.all(), costs: `[${costs.join()}]`, outcomes };
}

const costOf = ({ cost = NO_COST }: Outcome): string => cost;

/** Joins texts. What is long becomes a Buffer, piece by piece: see LONG_TEXT. */
class Joined {
  #text = '';
  readonly #before: Buffer[] = [];

  add(text: string): void {
    this.#text += text;
    if (this.#text.length < LONG_TEXT) return;
    this.#before.push(Buffer.from(this.#text));
    this.#text = '';
  }

  all(): string | Buffer {
    if (this.#before.length === 0) return this.#text;
    return Buffer.concat([...this.#before, Buffer.from(this.#text)]);
  }
}

export function recordsOf(flat: readonly string[]): ResultRecord[] {
  const records: ResultRecord[] = [];
  for (let i = 0; i < flat.length; i += 2) {
    const field = flat[i] as string;
    const value = flat[i + 1] as string;
    if (field === 'ok') pushSuccesses(records, value);
    else records.push({ index: Number(field.slice(1)), failed: true, value });
  }
  return records;
}

function pushSuccesses(records: ResultRecord[], values: string): void {
  let start = 1;
  while (start <= values.length) {
    const space = values.indexOf(' ', start);
    const next = values.indexOf(SEPARATOR, space);
    const end = next < 0 ? values.length : next;
    const index = Number(values.slice(start, space));
    records.push({ index, failed: false, value: values.slice(space + 1, end) });
    start = end + 1;
  }
}

/** Parses the reply of XREADGROUP in either version of the Redis protocol. */
export function entriesOf(reply: unknown): Entry[] {
  if (!reply) return [];
  const streams = Array.isArray(reply) ? reply : Object.entries(reply as object);
  const first = streams[0] as [string, StreamRow[]] | string | undefined;
  const rows = (typeof first === 'string' ? streams[1] : first?.[1]) as StreamRow[] | undefined;
  return (rows ?? []).map(([entry, [, payload = '']]) => fresh({ entry, payload }));
}

/** Parses the entries in a reply of `enter` or `settle`: one text, or a list when a payload contains the separator. */
export function entriesIn(brought: unknown): Entry[] {
  const text = typeof brought === 'string' && brought !== '';
  const flat: readonly string[] = text
    ? brought.split(SEPARATOR)
    : Array.isArray(brought)
      ? brought
      : [];
  const entries: Entry[] = [];
  for (let i = 0; i < flat.length; i += 2)
    entries.push(fresh({ entry: flat[i] as string, payload: flat[i + 1] as string }));
  return entries;
}

/** A sub-request on its first attempt. */
export const fresh = ({
  entry,
  payload,
}: {
  readonly entry: string;
  readonly payload: string;
}): Entry => ({
  entry,
  index: indexOf(entry),
  payload,
  tries: 0,
  crashes: 0,
  suspect: false,
});
