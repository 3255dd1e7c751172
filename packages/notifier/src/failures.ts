import {
  decode,
  decodeError,
  type FailureCommands,
  type KeptError,
  type KeptFailure,
} from '@piecework/protocol';
import type { CheckedFailuresOptions } from './failure-options.js';
import { IndexSet } from './index-set.js';
import { persist } from './persist.js';
import type { Stay } from './stay.js';

/** A failed sub-request, with everything that is kept of it. */
export interface Failure {
  readonly index: number;
  /** What it was submitted with; undefined where payloads are not asked for. */
  readonly payload: unknown;
  /** Runs that ended in an error or in a time-out. */
  readonly attempts: number;
  /** Runs that ended with their worker. */
  readonly crashes: number;
  /** What the handler threw last: name, message and, where there was one, stack. */
  readonly error: KeptError;
  /** Pass it to `failures` to go on behind this one. */
  readonly cursor: string;
}

/** Failures whose errors have the same name. */
export interface FailureGroup {
  readonly name: string;
  readonly count: number;
  /** The one with the lowest index. */
  readonly example: Omit<Failure, 'cursor'>;
}

/**
 * About so many characters are read at once. How long they are shows with the first one; of payloads the state says
 * how long the longest is, where the producer told it.
 */
const FIRST_PAGE = 1;
const PAGE_CHARS = 1_000_000;
const MOST = 500;

/**
 * The failures that are there when the first is asked for, in the order of the items, page by page:
 * one pass over the hash, in which they stand in no order, finds their indexes (a bit each), and they
 * are read in their order then.
 */
export async function* failuresOf(
  failures: FailureCommands,
  stay: Stay,
  { name, indexes, cursor, payload }: CheckedFailuresOptions,
): AsyncGenerator<Failure[]> {
  const from = Number(cursor?.slice(1) ?? 0);
  const wanted = indexes
    ? [...new Set(indexes)].filter((index) => index >= from).sort((a, b) => a - b)
    : await allOf(failures, stay, from, name);
  for await (const page of pagesOf(failures, stay, wanted, payload)) {
    const found = page.map((kept) => failureOf(kept, payload));
    // One that was redriven since may have failed anew, of something else.
    yield found.filter(({ error }) => name === undefined || error.name === name);
  }
}

/** Where all failures stand from `from` on, of that name if there is one. */
async function allOf(
  failures: FailureCommands,
  stay: Stay,
  from: number,
  name: string | undefined,
): Promise<Iterable<number>> {
  const indexes = new IndexSet();
  for await (const [index, error] of everyError(failures, stay)) {
    if (index >= from && (name === undefined || decodeError(error).name === name))
      indexes.add(index);
  }
  return indexes.ascending();
}

/** These failures; what did not fail is left out. `indexes` rise. */
export async function* pagesOf(
  failures: FailureCommands,
  stay: Stay,
  indexes: Iterable<number>,
  payload: boolean,
): AsyncGenerator<KeptFailure[]> {
  let each = FIRST_PAGE;
  const longest = payload ? await persist(stay, () => failures.longestPayload()) : 0;
  const most = Math.max(1, Math.min(MOST, Math.floor(PAGE_CHARS / Math.max(1, longest))));
  let page: number[] = [];
  const read = async () => {
    const found = await persist(stay, () => failures.pick(page, payload));
    const chars = found.reduce((sum, one) => sum + one.error.length + one.payload.length, 1);
    each = Math.max(1, Math.min(most, Math.floor((PAGE_CHARS * page.length) / chars)));
    page = [];
    return found;
  };
  for (const index of indexes) {
    page.push(index);
    if (page.length >= each) yield await read();
  }
  if (page.length > 0) yield await read();
}

/** All failures by the name of their errors, the most frequent first. */
export async function groupsOf(failures: FailureCommands, stay: Stay): Promise<FailureGroup[]> {
  const seen = new IndexSet();
  const groups = new Map<string, { count: number; first: number }>();
  for await (const [index, error] of everyError(failures, stay)) {
    if (!seen.add(index)) continue;
    const { name } = decodeError(error);
    const group = groups.get(name) ?? { count: 0, first: index };
    groups.set(name, { count: group.count + 1, first: Math.min(group.first, index) });
  }
  const found: FailureGroup[] = [];
  for (const [name, { count, first }] of groups) {
    const [kept] = await persist(stay, () => failures.pick([first], true));
    // None: it was redriven meanwhile.
    if (!kept) continue;
    const { cursor, ...example } = failureOf(kept, true);
    found.push({ name, count, example });
  }
  return found.sort((a, b) => b.count - a.count || (a.name < b.name ? -1 : 1));
}

/** Index and error of each, in no order; one may come twice. */
async function* everyError(
  failures: FailureCommands,
  stay: Stay,
): AsyncGenerator<[number, string]> {
  let cursor = '0';
  do {
    const at = cursor;
    const page = await persist(stay, () => failures.scan(at));
    yield* page.errors;
    cursor = page.cursor;
  } while (cursor !== '0');
}

function failureOf(kept: KeptFailure, payload: boolean): Failure {
  const { index, attempts, crashes } = kept;
  return {
    index,
    payload: payload ? decode(kept.payload) : undefined,
    attempts,
    crashes,
    error: decodeError(kept.error),
    cursor: `f${index + 1}`,
  };
}
