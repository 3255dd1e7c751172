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
  'test/chaos/sentinel': 'a fleet behind Sentinel under attack',
  'test/chaos/upheavals': 'a fleet on a server that loses writes and whose clock jumps',
  'test/chaos/mixed': 'two revisions in one fleet',
  'test/crash/crash-limit': 'workers that crash again and again',
  'test/crash/suspects': 'fleets of processes, one of which crashes at some payloads',
  'test/crash/whole-life': 'everything at once, while workers are killed',
  'test/crash/lost-submissions': 'replicas that are behind take over while many submit',
  'test/crash/lost-writes': 'servers that come back without their last writes',
  'test/crash/busy-loop': 'processes whose event loop stands still',
  'test/crash/timed-consumers': 'consumers of timed sets that are killed',
  'test/cluster/': 'failovers, slot moves and refusals of a cluster',
  'test/model/model': 'all states of the model of the protocol',
  'test/invariants/mutants': 'random histories without each cure',
  'test/invariants/random': 'random histories',
  'test/chaos/judge-random': 'random histories for the judge of chaos',
  'test/bench/': 'every figure of the benchmarks, measured on a small size',
  'test/flow/cli-messages': 'each message of the command line, by a process for each',
  'test/flow/cli-dev': 'servers and clusters that the command line starts',
  'test/flow/cli-ended': 'each end of a run, by a process for each',
  'test/flow/cli-exec': 'programs as handlers, by a process for each',
  'test/flow/cli-fleet': 'processes of a fleet that die, or are stopped, in each way',
  'test/flow/cli-input': 'each format of input and output, by a process for each',
  'test/flow/cli-resume': 'runs that are continued, by a process for each',
  'test/flow/cli-run': 'each way that a run reads, writes and ends, by a process for each',
  'test/flow/cli-service': 'workers as services: signals, health, logs',
  'test/flow/cli-terminal': 'what each command shows on a terminal',
  'test/flow/cli-top': 'the terminal view, in terminals of several sizes',
  'test/flow/delayed-order': 'the order of very many delayed tasks',
  'test/flow/doctor-servers': 'servers with each setting that the doctor warns of',
  'test/flow/examples': 'every example as a program of its own',
  'test/flow/nearly-full': 'each call to a server without memory',
  'test/flow/queues-under-stress': 'queues beside requests while many use them',
  'test/flow/scheduler-scale': 'very many messages of a scheduler',
  'test/flow/script-bounds': 'calls with as many entries as they may have',
  'test/flow/sentinel': 'failovers by sentinels',
  'test/flow/server-errors': 'each error that a server answers with',
  'test/lua/cures-bounds': 'calls that are as large as they may be',
  'test/lua/cures-large': 'states with very many entries',
  'test/docs/testing-guide': 'the project of the testing guide, installed from packages',
  'test/packages/start': 'what processes of each kind load',
  'test/packages/tarballs': 'packed packages',
  'test/dashboard/example': 'the living example of piecework dev --dashboard',
  'test/dashboard/browser': 'every page of the dashboard in Chromium, where it is installed',
  'test/lua/repeat-law': 'every script twice from every state',
};

/** Prefixes of those files that play every n-th of their cases (see test/support/mode.ts). */
const playedInParts = [
  'test/crash/nth-call',
  'test/interleavings/interleavings',
  'test/chaos/short',
  'test/model/model',
  'test/invariants/mutants',
  'test/bench/bench',
];

/** Exceptions that `npm test` does run: the smallest of their kind. */
const usual = ['test/cluster/smoke', 'test/flow/cli-running'];

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
