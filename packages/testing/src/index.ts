/**
 * `@piecework/testing`: for tests of programs that use Piecework. docs/guide/testing.md shows how.
 */
export { assertFailed, assertFailures, assertResults, assertSucceeded } from './assertions.js';
export type { DrainOptions } from './drain.js';
export { RequestFailuresError, StuckError } from './drain-errors.js';
export { type FailOptions, type FakeCall, FakeTask, fakeTask } from './fake-task.js';
export { matchers } from './matchers.js';
export type { TestClock } from './test-clock.js';
export { startTestKit, type TestKit, type TestKitOptions } from './test-kit.js';
export type { ExpectedFailure, ExpectedFailures } from './verdicts.js';
