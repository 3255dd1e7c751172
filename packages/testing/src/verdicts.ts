import { isDeepStrictEqual } from 'node:util';
import type { Failure, RequestDetails, RequestHandle } from 'piecework';
import { checkRequest } from './check-request.js';

/** What a check of a request found. `message` says why it failed; of a check that passed, what was found instead. */
export interface Verdict {
  readonly pass: boolean;
  readonly message: string;
  readonly actual?: unknown;
  readonly expected?: unknown;
}

/** A failure as a test expects it: its message, a part of it, or name and message of the error. */
export type ExpectedFailure =
  | string
  | RegExp
  | { readonly name?: string | undefined; readonly message?: string | RegExp | undefined };

/** Failures by index, or how many there are. */
export type ExpectedFailures = number | Readonly<Record<number, ExpectedFailure>>;

export type Equals = (actual: unknown, expected: unknown) => boolean;

/** The most failures that a message lists. */
const LISTED = 5;

const about = ({ id, status, outcome, counts, why }: RequestDetails): string => {
  const { total, succeeded, failed, cancelled, ready, inFlight, delayed } = counts;
  const settled = `${succeeded} of ${total} succeeded, ${failed} failed, ${cancelled} cancelled`;
  if (status === 'complete') return `request ${id} ${outcome}: ${settled}`;
  const unsettled = `${ready} ready, ${inFlight} in flight, ${delayed} delayed`;
  return `request ${id} is not complete: ${settled}, ${unsettled}; ${why}`;
};

const rowOf = ({ index, error }: Failure) => `\n  item ${index}: ${error.name}: ${error.message}`;

/** Whether the request is complete and succeeded. */
export async function succeeded(request: RequestHandle): Promise<Verdict> {
  const status = await statusOf(request);
  const failures = status.counts.failed > 0 ? await failuresOf(request, LISTED) : [];
  const more = status.counts.failed - failures.length;
  const rows = failures.map(rowOf).join('') + (more > 0 ? `\n  and ${more} more` : '');
  return { pass: status.outcome === 'succeeded', message: about(status) + rows };
}

/** Whether the request is complete and failed. */
export async function failed(request: RequestHandle): Promise<Verdict> {
  const status = await statusOf(request);
  return { pass: status.outcome === 'failed', message: about(status) };
}

/** Whether the results, in the order of the items, equal `expected`; items without a result are left out. */
export async function results(
  request: RequestHandle,
  expected: readonly unknown[],
  equals: Equals = isDeepStrictEqual,
): Promise<Verdict> {
  const status = await statusOf(request);
  if (status.status !== 'complete') return { pass: false, message: about(status) };
  const actual: unknown[] = [];
  for await (const { value } of request.results({ order: 'index' })) actual.push(value);
  const pass = equals(actual, expected);
  const message = `the results of request ${request.id} are ${pass ? '' : 'not '}the expected ones`;
  return { pass, message, actual, expected };
}

/** Whether exactly these sub-requests failed, with these errors; or so many. */
export async function failures(
  request: RequestHandle,
  expected: ExpectedFailures,
): Promise<Verdict> {
  checkRequest(request);
  const found = await failuresOf(request);
  const rows = found.map(rowOf).join('') || ' none';
  const message = `failures of request ${request.id}:${rows}`;
  if (typeof expected === 'number') return { pass: found.length === expected, message };
  const wanted = Object.entries(expected);
  const pass =
    found.length === wanted.length &&
    wanted.every(([index, error]) =>
      found.some((one) => one.index === Number(index) && matches(one, error)),
    );
  const actual = Object.fromEntries(found.map(({ index, error }) => [index, error.message]));
  return { pass, message, actual, expected };
}

function matches({ error }: Failure, expected: ExpectedFailure): boolean {
  if (typeof expected === 'string') return error.message.includes(expected);
  if (expected instanceof RegExp) return expected.test(error.message);
  const { name, message } = expected;
  if (name !== undefined && name !== error.name) return false;
  return message === undefined || matches({ error } as Failure, message);
}

function statusOf(request: RequestHandle): Promise<RequestDetails> {
  checkRequest(request);
  return request.status();
}

async function failuresOf(request: RequestHandle, most = Number.POSITIVE_INFINITY) {
  const found: Failure[] = [];
  for await (const failure of request.failures()) {
    if (found.length === most) break;
    found.push(failure);
  }
  return found;
}
