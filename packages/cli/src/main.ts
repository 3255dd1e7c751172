import { readFileSync } from 'node:fs';
import { PieceworkError } from '@piecework/protocol';
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
import { columnsOf, wrapped } from './table.js';
import { watchCommand } from './watch.js';
import { withCause } from './with-cause.js';
import { workerCommand } from './worker.js';

/** Flags of GNU parallel and xargs, and what they are here. */
const OF_OTHERS: Readonly<Record<string, string>> = {
  '--halt': 'see --on-exceeded cancel and --tolerated-failures',
  '--retries': 'see --attempts',
  '--resume-failed': 'see --retry-failed',
  '-q': 'items need no quotes; see --log-level for less to read',
  '--timeout': 'see --attempt-timeout-ms',
  '--max-procs': 'see --jobs',
  '--keep-order': 'results are in the order of the input',
  '-k': 'results are in the order of the input',
  '--progress': 'it is shown on a terminal',
  '--bar': 'it is shown on a terminal',
  '--colsep': 'see --split csv or tsv',
  '--null': "see --split 'delimiter:\\0'",
  '-0': "see --split 'delimiter:\\0'",
};

/** For whoever gives a command and its items as to GNU parallel. */
const AS_FLAGS =
  "the command is given by --exec, and its items by --input, as in: printf '%s\\n' a b c | piecework run --input - --exec 'echo {}' --out -";

const { version } = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
) as { version: string };

/** Codes that are the fault of the command; nothing was begun. */
const WRONG_USAGE = ['INVALID_OPTION', 'HANDLER'];

/** The command line; its formats and exit codes are written down in docs/cli.md. */
const program = new Command('piecework')
  .description('Split big requests, work them off by a fleet, await one completion. On Redis.')
  .version(version);

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
/** The command whose words were wrong. */
let misused = program;
for (const command of [program, ...program.commands]) {
  command.exitOverride((error) => {
    misused = command;
    throw error;
  });
  // What commander has to say is said below, with everything else.
  command.configureOutput({ outputError: () => {} });
}

// ioredis prints what is thrown, and said, as well.
const { warn } = console;
console.warn = (...words) => {
  if (!String(words[0]).startsWith('Skipping the ready check')) warn(...words);
};

// A terminal that was closed takes no words; what they are about goes on to its end.
process.stderr.on('error', () => {});

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

/** Says in one line what is wrong, and answers the exit code. */
function fail(error: unknown): number {
  if ((error as NodeJS.ErrnoException).code === 'EPIPE') return 1;
  if (error instanceof CommanderError && isHelp(error)) return error.exitCode === 0 ? 0 : 2;
  const { code, message } = asFailure(error);
  if (json) console.error(JSON.stringify({ error: { code, message } }));
  else if (code === 'UNEXPECTED') console.error(error);
  else console.error(wrapped(`piecework: ${message}`, 0, columnsOf(process.stderr)));
  return WRONG_USAGE.includes(code) ? 2 : 1;
}

/** Help, or the version, was asked for, or help is all there is to say. */
function isHelp({ code }: CommanderError): boolean {
  return /[hH]elp|version/.test(code);
}

function asFailure(error: unknown): { code: string; message: string } {
  if (error instanceof CommanderError) return { code: 'INVALID_OPTION', message: misuse(error) };
  const { code = '', message, syscall } = error as NodeJS.ErrnoException;
  if (error instanceof PieceworkError) return { code, message: withCause(error) };
  // The system refused something: where in our code it was asked is no help.
  if (syscall !== undefined) return { code, message };
  return { code: 'UNEXPECTED', message };
}

/** "run: unknown option '--inptu' (did you mean --input?); piecework run --help lists what there is" */
function misuse({ code, message }: CommanderError): string {
  const [first = '', ...more] = message.replace(/^error: /, '').split('\n');
  const [, flag = ''] = /^unknown option '(.+)'/.exec(first) ?? [];
  const ours = OF_OTHERS[flag];
  const meant = more.join(' ').replace('Did you mean', 'did you mean');
  const hint = ours ? `(${ours})` : meant;
  if (code === 'commander.excessArguments' && misused.name() === 'run') return `run: ${AS_FLAGS}`;
  const name = misused === program ? '' : `${misused.name()}: `;
  const help = misused === program ? 'piecework --help' : `piecework ${misused.name()} --help`;
  const said = first.replace(
    / for '.*'\. Expected (\d+) .* but got (\d+)\.$/,
    ': $2 given, $1 expected',
  );
  const what = `${name}${said}${hint === '' ? '' : ` ${hint}`}`;
  return `${what}; ${help} lists what there is`;
}
