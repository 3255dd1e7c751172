import {
  decode,
  decodeError,
  type FailureCommands,
  type KeptError,
  type KeptFailure,
  ResultsLostError,
} from '@piecework/protocol';
import { IndexSet } from '../results/index-set.js';
import { persist } from '../waiting/persist.js';
import type { WaitScope } from '../waiting/wait-scope.js';
import { FailureKinds } from './failure-kinds.js';
import type { CheckedFailuresOptions } from './failure-options.js';

/** A failed sub-request, with everything that Redis keeps of it. */
export interface Failure {
  readonly index: number;
  /** Its item, decoded, or a JsonText with `jsonText: true`; undefined with `payload: false`. */
  readonly payload: unknown;
  /** Runs that ended in an error or in a time-out. */
  readonly attempts: number;
  /** Runs that ended with their worker. */
  readonly crashes: number;
  /** What the handler threw last: name, message and, where there was one, stack. */
  readonly error: KeptError;
  /** Pass it to `failures` to continue behind this one. */
  readonly cursor: string;
}

/**
 * Failures of one kind: their errors have the same name, and their messages are the same except for numbers, paths,
 * names with dots and quoted words.
 */
export interface FailureGroup {
  /** Name of the errors, as 'TypeError'. */
  readonly name: string;
  /**
   * First line of the message of the example. After a hundred kinds, the failures of all others of one name are one
   * group, with the message 'with other messages'.
   */
  readonly message: string;
  /** How many there are. */
  readonly count: number;
  /** The one with the lowest index. */
  readonly example: Omit<Failure, 'cursor'>;
}

/**
 * Pages of about PAGE_CHARS characters. The first failure, read alone, shows how long they are; of payloads the
 * state names the longest, if the producer recorded it.
 */
const FIRST_PAGE = 1;
const PAGE_CHARS = 1_000_000;
const PAGE_MOST = 500;

/**
 * The failures that exist when the first one is asked for, in the order of the items, page by page. The hash has
 * them in no order: one pass over it finds their indexes, one bit each; then they are read in order.
 */
export async function* failuresOf(
  failures: FailureCommands,
  scope: WaitScope,
  { name, indexes, cursor, payload, jsonText }: CheckedFailuresOptions,
  expectOurs: (failures: readonly KeptFailure[]) => Promise<void>,
): AsyncGenerator<Failure[]> {
  const from = Number(cursor?.slice(1) ?? 0);
  const wanted = indexes
    ? [...new Set(indexes)].filter((index) => index >= from).sort((a, b) => a - b)
    : await allOf(failures, scope, from, name);
  for await (const page of pagesOf(failures, scope, wanted, payload)) {
    // cure: failures are not those of another life of the id
    await expectOurs(page);
    const found = page.map((kept) => failureOf(kept, { payload, jsonText }));
    // One that was redriven since may have failed again, with another error.
    yield found.filter(({ error }) => name === undefined || error.name === name);
  }
}

/** Indexes of all failures from `from` on; with a `name`, only of errors of that name. */
async function allOf(
  failures: FailureCommands,
  scope: WaitScope,
  from: number,
  name: string | undefined,
): Promise<Iterable<number>> {
  const indexes = new IndexSet();
  for await (const [index, error] of everyError(failures, scope)) {
    if (index >= from && (name === undefined || decodeError(error).name === name))
      indexes.add(index);
  }
  return indexes.ascending();
}

/** The failures of these indexes, which rise; an index that did not fail is left out. */
export async function* pagesOf(
  failures: FailureCommands,
  scope: WaitScope,
  indexes: Iterable<number>,
  payload: boolean,
): AsyncGenerator<KeptFailure[]> {
  let each = FIRST_PAGE;
  const longest = payload ? await persist(scope, () => failures.longestPayload()) : 0;
  const most = Math.max(1, Math.min(PAGE_MOST, Math.floor(PAGE_CHARS / Math.max(1, longest))));
  let page: number[] = [];
  const read = async () => {
    const found = await persist(scope, () => failures.pick(page, payload));
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

/** All failures grouped by kind, the most frequent first. */
export async function groupsOf(
  failures: FailureCommands,
  scope: WaitScope,
  jsonText: boolean,
): Promise<FailureGroup[]> {
  const seen = new IndexSet();
  const kinds = new FailureKinds();
  for await (const [index, error] of everyError(failures, scope)) {
    if (seen.add(index)) kinds.note(index, decodeError(error));
  }
  const found: FailureGroup[] = [];
  for (const { name, message, count, indexes } of kinds.sorted) {
    const [kept] = await persist(scope, () => failures.pick(indexes.slice(0, 1), true));
    // Absent when it was redriven meanwhile.
    if (!kept) continue;
    const { cursor, ...example } = failureOf(kept, { payload: true, jsonText });
    found.push({ name, message, count, example });
  }
  return found;
}

/** @throws ResultsLostError when the request has failed sub-requests and their errors are gone, as by an eviction */
export async function expectKept(
  failures: FailureCommands,
  scope: WaitScope,
  requestId: string,
): Promise<void> {
  const missing = await persist(scope, () => failures.missing());
  // cure: failures that were evicted are an error
  if (missing > 0) throw new ResultsLostError(requestId, missing);
}

/** Index and error of every failure, in no order; one may come twice. */
async function* everyError(
  failures: FailureCommands,
  scope: WaitScope,
): AsyncGenerator<[number, string]> {
  let cursor = '0';
  do {
    const at = cursor;
    const page = await persist(scope, () => failures.scan(at));
    yield* page.errors;
    cursor = page.cursor;
  } while (cursor !== '0');
}

function failureOf(
  kept: KeptFailure,
  { payload, jsonText }: { payload: boolean; jsonText: boolean },
): Failure {
  const { index, attempts, crashes } = kept;
  return {
    index,
    payload: payload ? decode(kept.payload, jsonText) : undefined,
    attempts,
    crashes,
    error: decodeError(kept.error),
    cursor: `f${index + 1}`,
  };
}
