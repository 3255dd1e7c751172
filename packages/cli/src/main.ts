import { readFileSync } from 'node:fs';
import { InvalidOptionError, PieceworkError } from '@piecework/protocol';
import { Command, CommanderError } from 'commander';
import { completeCommand } from './completion.js';
import { controlCommands } from './control.js';
import { devCommand } from './dev.js';
import { doctorCommand } from './doctor.js';
import { addExamples } from './examples.js';
import { failureCommands } from './failures.js';
import { listCommands } from './list.js';
import { lookCommands } from './look.js';
import { redriveCommand } from './redrive.js';
import { runCommand } from './run.js';
import { submitCommand } from './submit.js';
import { watchCommand } from './watch.js';
import { workerCommand } from './worker.js';

const { version } = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
) as { version: string };

/** The command line; its formats and exit codes are written down in docs/cli.md. */
const program = new Command('piecework')
  .description('Split big requests, work them off by a fleet, await one completion. On Redis.')
  .version(version)
  .showHelpAfterError('(piecework --help shows what there is)');

runCommand(program);
submitCommand(program);
workerCommand(program);
lookCommands(program);
failureCommands(program);
redriveCommand(program);
controlCommands(program);
listCommands(program);
watchCommand(program);
doctorCommand(program);
devCommand(program);
completeCommand(program);
addExamples(program);
const json = process.argv.includes('--json');
for (const command of [program, ...program.commands]) {
  command.exitOverride();
  // What commander has to say is then part of the one JSON error below.
  if (json) command.configureOutput({ writeErr: () => {} });
}

// Whoever reads our output may have seen enough, as `head` does.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // These have something to clear up, and learn of it themselves.
  const command = process.argv[2] ?? '';
  if (['run', 'submit'].includes(command)) return;
  if (error.code === 'EPIPE') process.exit(0);
  if (command === 'results') return;
  console.error(`piecework: standard output cannot be written: ${error.message}`);
  process.exit(1);
});

try {
  await program.parseAsync();
} catch (error) {
  process.exitCode = fail(error);
}

function fail(error: unknown): number {
  if ((error as NodeJS.ErrnoException).code === 'EPIPE') return 1;
  // Help and version are no errors.
  if (error instanceof CommanderError && error.exitCode === 0) return 0;
  const wrongUsage = error instanceof InvalidOptionError || error instanceof CommanderError;
  const { message } = error as Error;
  if (json) {
    const known = error instanceof PieceworkError ? error.code : 'UNEXPECTED';
    console.error(
      JSON.stringify({ error: { code: wrongUsage ? 'INVALID_OPTION' : known, message } }),
    );
  } else if (error instanceof PieceworkError) {
    const cause = error.cause instanceof Error ? `\n  ${error.cause.message}` : '';
    console.error(`piecework: ${message}${cause}`);
  } else if (!(error instanceof CommanderError)) {
    console.error(error);
  }
  return wrongUsage ? 2 : 1;
}
