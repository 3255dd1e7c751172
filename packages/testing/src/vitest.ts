/**
 * `import '@piecework/testing/vitest'` adds the matchers to vitest's `expect`, in a test file or in a setup file.
 */
import { expect } from 'vitest';
import { matchers } from './matchers.js';
import type { ExpectedFailures } from './verdicts.js';

expect.extend(matchers);

interface RequestMatchers<R> {
  /** The request is complete and succeeded. Does not wait. */
  toHaveSucceeded(): Promise<R>;
  /** The request is complete and failed. Does not wait. */
  toHaveFailed(): Promise<R>;
  /** These are the results, in the order of the items; items without one are left out. */
  toHaveResults(expected: readonly unknown[]): Promise<R>;
  /** Exactly these sub-requests failed, by index, with these errors; or so many. */
  toHaveFailures(expected: ExpectedFailures): Promise<R>;
}

declare module 'vitest' {
  // biome-ignore lint/suspicious/noExplicitAny: vitest declares it so, and declarations have to agree.
  interface Matchers<T = any> extends RequestMatchers<T> {}
}
