/* Cures of packages/cli. */

/** @type {import('./cures.mjs').CodeCure[]} */
export const codeCommandLine = [
  {
    cure: 'an element that is too long is refused',
    test: 'test/flow/cli-json.test.ts',
    name: 'is refused with its place: an element of 2 MiB (--split json)',
    change: 'never',
  },
  {
    cure: 'a file that becomes shorter while it is read is not taken for a whole one',
    test: 'test/flow/cli-real-files.test.ts',
    name: 'is refused, as the rest is missing',
    change: 'never',
  },
  {
    cure: 'a worker that is refused by the server ends',
    test: 'test/flow/commands.test.ts',
    name: '`run` on a server without a command ends, and names the command',
    change: 'never',
  },
  {
    cure: 'the exit of a process is recorded at once',
    test: 'test/crash/suspects.test.ts',
    name: 'fails with what its parent saw, and nobody waits for its lease: process.exit(7)',
    change: { becomes: '[]' },
  },
  {
    cure: 'a worker process that ended is started again',
    test: 'test/flow/cli-fleet.test.ts',
    name: 'continues, and has all results but that of the guilty sub-request: process.exit',
    change: 'always',
  },
  {
    cure: 'programs end with their worker',
    test: 'test/flow/cli-fleet.test.ts',
    name: 'end when their worker is killed',
  },
  {
    cure: 'output is read before its pipe is closed',
    test: 'test/flow/cli-exec-program.test.ts',
    name: 'is read whole when this process does something else for long after the program ended',
  },
  {
    cure: 'running handlers may finish after the first Ctrl-C',
    test: 'test/flow/cli-fleet.test.ts',
    name: 'that are running may end after the first Ctrl-C, each in its time',
  },
  {
    cure: 'one Ctrl-C that arrives twice is one',
    test: 'test/flow/stop-signals.test.ts',
    name: 'counts once when npm or npx passes it on to the command that has it from the terminal',
    change: 'never',
  },
  {
    cure: 'a signal that ends the process leaves the terminal with a cursor',
    test: 'test/flow/cli-terminal.test.ts',
    name: 'Ctrl-C during watch shows the cursor again',
  },
  {
    cure: 'one run of a name at a time',
    test: 'test/flow/cli-resume.test.ts',
    name: 'is not run a second time, and is not disturbed',
    change: 'always',
  },
  {
    cure: 'files of an earlier stop go before the run continues',
    test: 'test/flow/cli-out-dir.test.ts',
    name: 'by kill -9 is continued into the same folder',
  },
  {
    cure: 'what a stopped run has not read is pending',
    test: 'test/flow/cli-out-dir.test.ts',
    name: 'by Ctrl-C: what succeeded, failed and is pending is the input, each once: --window 20',
    change: 'always',
  },
  {
    cure: 'entries of ended workers of the last run are freed',
    test: 'test/flow/cli-resume.test.ts',
    name: 'continues at once with programs as well, when they have ended',
  },
  {
    cure: 'workers end with the Redis of their run',
    test: 'test/flow/own-server.test.ts',
    name: 'a run ends with an error when its Redis is killed, and leaves no worker or program',
  },
  {
    cure: 'a run that cannot cancel its request ends all the same',
    test: 'test/flow/own-server.test.ts',
    name: 'a run without a name ends after SIGTERM while Redis is away, and says why',
  },
];
