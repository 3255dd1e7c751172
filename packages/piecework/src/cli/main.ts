import { InvalidOptionError, PieceworkError } from '@piecework/protocol';
import { Command, CommanderError } from 'commander';
import { lookCommands } from './look.js';
import { runCommand } from './run.js';
import { submitCommand } from './submit.js';
import { workerCommand } from './worker.js';

/** Exit codes: 0 the request succeeded, 1 it failed or something else did, 2 wrong usage. */
const program = new Command('piecework')
  .description('Split big requests, work them off by a fleet, await one completion. On Redis.')
  .version('0.1.0')
  .showHelpAfterError('(piecework --help shows what there is)')
  .exitOverride();

runCommand(program);
submitCommand(program);
workerCommand(program);
lookCommands(program);
for (const command of program.commands) command.exitOverride();

try {
  await program.parseAsync();
} catch (error) {
  process.exitCode = fail(error);
}

function fail(error: unknown): number {
  // Commander has printed its own; help and version are no errors.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  const wrongUsage = error instanceof InvalidOptionError;
  if (process.argv.includes('--json')) {
    const { message } = error as Error;
    const code = error instanceof PieceworkError ? error.code : 'UNEXPECTED';
    console.error(JSON.stringify({ error: { code, message } }));
  } else if (error instanceof PieceworkError) {
    const cause = error.cause instanceof Error ? `\n  ${error.cause.message}` : '';
    console.error(`piecework: ${error.message}${cause}`);
  } else {
    console.error(error);
  }
  return wrongUsage ? 2 : 1;
}
