import { AssertionError } from 'node:assert';
import type { RequestHandle } from 'piecework';
import {
  type ExpectedFailures,
  failed,
  failures,
  results,
  succeeded,
  type Verdict,
} from './verdicts.js';

/*
 * The checks as functions, for every test runner. None waits: drain the request, or await its completion, before.
 */

/** @throws AssertionError that lists failures, unless the request is complete and succeeded */
export async function assertSucceeded(request: RequestHandle): Promise<void> {
  judge(await succeeded(request), assertSucceeded);
}

/** @throws AssertionError unless the request is complete and failed */
export async function assertFailed(request: RequestHandle): Promise<void> {
  judge(await failed(request), assertFailed);
}

/** @throws AssertionError unless these are the results, in the order of the items; items without one are left out */
export async function assertResults(
  request: RequestHandle,
  expected: readonly unknown[],
): Promise<void> {
  judge(await results(request, expected), assertResults);
}

/** @throws AssertionError unless exactly these sub-requests failed, with these errors, or so many */
export async function assertFailures(
  request: RequestHandle,
  expected: ExpectedFailures,
): Promise<void> {
  judge(await failures(request, expected), assertFailures);
}

function judge(
  { pass, message, actual, expected }: Verdict,
  stackStartFn: (...given: never[]) => unknown,
): void {
  if (pass) return;
  throw new AssertionError({ message, actual, expected, stackStartFn });
}
