import type { RequestHandle } from 'piecework';
import {
  type Equals,
  type ExpectedFailures,
  failed,
  failures,
  results,
  succeeded,
  type Verdict,
} from './verdicts.js';

/** What a runner answers to a matcher: vitest and Jest agree on it. */
interface Answer {
  readonly pass: boolean;
  readonly message: () => string;
  readonly actual?: unknown;
  readonly expected?: unknown;
}

const answer = ({ message, ...verdict }: Verdict): Answer => ({
  ...verdict,
  message: () => message,
});

/**
 * For `expect.extend(matchers)` of vitest and Jest; `@piecework/testing/vitest` does so, with types. All of them are
 * async: `await expect(request).toHaveSucceeded()`. None waits for the request.
 */
export const matchers = {
  /** The request is complete and succeeded. */
  async toHaveSucceeded(request: RequestHandle): Promise<Answer> {
    return answer(await succeeded(request));
  },
  /** The request is complete and failed. */
  async toHaveFailed(request: RequestHandle): Promise<Answer> {
    return answer(await failed(request));
  },
  /** The results in the order of the items; items without one are left out. */
  async toHaveResults(
    this: { readonly equals: Equals },
    request: RequestHandle,
    expected: readonly unknown[],
  ): Promise<Answer> {
    return answer(await results(request, expected, this.equals));
  },
  /** Exactly these sub-requests failed, by index, with these errors; or so many. */
  async toHaveFailures(request: RequestHandle, expected: ExpectedFailures): Promise<Answer> {
    return answer(await failures(request, expected));
  },
};
