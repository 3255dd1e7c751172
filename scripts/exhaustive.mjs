/*
 * Tests that go through very many cases of one kind, or need a fleet or a cluster for minutes. `npm test` leaves them
 * out, because other tests already show each behaviour of Piecework. `npm run test:all` runs all of them, and `.ci/run`
 * a part that the commit chooses: of the files in `playedInParts` every n-th case, of all others every n-th file.
 */
/** Prefixes of the paths of these test files, and what the files go through. */
export const exhaustive = {
  'test/crash/nth-call': 'each call of each role fails in each way',
  'test/crash/killed-at-each-point': 'a worker is killed at each of its commands',
  'test/crash/frozen-at-each-point': 'a worker freezes at each of its commands',
  'test/crash/kill-storm': 'a fleet whose workers are killed one after the other',
  'test/crash/same-id': 'first replies are lost while many submit the same id',
  'test/interleavings/': 'orders of the round trips of all roles',
  'test/chaos/short': 'a fleet under attack',
  'test/chaos/cluster': 'a fleet on a cluster under attack',
  'test/chaos/upheavals': 'a fleet on a server that loses writes and whose clock jumps',
  'test/chaos/mixed': 'two revisions in one fleet',
  'test/cluster/': 'failovers, slot moves and refusals of a cluster',
  'test/model/model': 'all states of the model of the protocol',
  'test/bench/': 'every figure of the benchmarks, measured on a small size',
  'test/flow/cli-messages': 'each message of the command line, by a process for each',
  'test/dashboard/browser': 'every page of the dashboard in Chromium, where it is installed',
  'test/lua/repeat-law': 'every script twice from every state',
};

/** Prefixes of those files that play every n-th of their cases (see test/support/mode.ts). */
const playedInParts = [
  'test/crash/nth-call',
  'test/interleavings/interleavings',
  'test/chaos/short',
  'test/model/model',
  'test/bench/bench',
];

/** Exceptions that `npm test` does run: the smallest of their kind. */
const usual = ['test/cluster/smoke'];

/** Whether `npm test` leaves a test file out. */
export function isExhaustive(path) {
  const begins = (prefix) => path.startsWith(prefix);
  return Object.keys(exhaustive).some(begins) && !usual.some(begins);
}

/** Of exhaustive files, those that have a part of their cases or are of this part themselves. */
export function filesOfPart(files, every, part) {
  const inParts = (path) => playedInParts.some((prefix) => path.startsWith(prefix));
  const whole = files.filter((path) => !inParts(path)).sort();
  return [...files.filter(inParts), ...whole.filter((_, i) => i % every === part)];
}
