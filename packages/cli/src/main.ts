import { readFileSync } from 'node:fs';
import { inspect } from 'node:util';
import { Command, CommanderError } from 'commander';
import { addCommands } from './commands.js';
import { addExamples } from './flags/examples.js';
import { reasonOf } from './terminal/system-reasons.js';
import { withCause } from './terminal/with-cause.js';

/** Flags of GNU parallel and xargs, and what to use here instead. */
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
  '--colsep': 'see --split csv with --csv-delimiter, or --split tsv',
  '--null': "see --split 'delimiter:\\0'",
  '-0': "see --split 'delimiter:\\0'",
};

/** Says how to give the command and the items to somebody who gives them as to GNU parallel. */
const AS_FLAGS =
  "the command is given by --exec, and its items by --input, as in: printf '%s\\n' a b c | piecework run --input - --exec 'echo {}' --out -";

const { version } = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
) as { version: string };

/** Error codes of wrong usage, and of a package that is missing: nothing was started. */
const WRONG_USAGE = ['INVALID_OPTION', 'HANDLER', 'NOT_INSTALLED'];

/** Error codes whose text has several lines: a stack, the log of a server that was started here, a command to copy. */
const IN_LINES = ['UNEXPECTED', 'REDIS_NOT_STARTED', 'REDIS_ENDED', 'NOT_INSTALLED'];

/** The command line. docs/cli.md describes its formats and exit codes. */
const program = new Command('piecework')
  .description(
    'Split big requests, have a fleet of workers handle them, await one completion. On Redis.',
  )
  .version(version);

const [, , word] = process.argv;
if (word !== '--version' && word !== '-V') await addCommands(program, word);
addExamples(program);

const json = process.argv.includes('--json');
/** Whether results go to standard output. */
const OUT_HERE = process.argv.some(
  (arg, i, all) => arg === '--out=-' || (arg === '-' && all[i - 1] === '--out'),
);
/** The command that was used wrongly. */
let misused = program;
for (const command of [program, ...program.commands]) {
  command.exitOverride((error) => {
    misused = command;
    throw error;
  });
  // Commander's messages are printed by `fail`, like all other errors.
  command.configureOutput({ outputError: () => {} });
}

// ioredis prints this warning besides an error that `fail` prints.
const { warn } = console;
console.warn = (...words) => {
  if (!String(words[0]).startsWith('Skipping the ready check')) warn(...words);
};

// Standard error of a closed terminal cannot be written; the command continues to its end.
process.stderr.on('error', () => {});

// The reader of our output may close it early, as `head` does.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  const command = process.argv[2] ?? '';
  const goesOn = ['run', 'submit'].includes(command);
  if (error.code === 'EPIPE' && !goesOn) process.exit(0);
  // These notice it themselves, where they write results.
  if (error.code === 'EPIPE' || command === 'results' || OUT_HERE) return;
  // biome-ignore lint/suspicious/noConsole: a message of Node, and there may be no turn left to load `say`
  console.error(`piecework: standard output cannot be written: ${reasonOf(error)}`);
  if (!goesOn) process.exit(1);
  // These clean up first; then their own exit code is known.
  process.once('exit', () => {
    process.exitCode ||= 1;
  });
});

try {
  await program.parseAsync();
} catch (error) {
  process.exitCode = await fail(error);
}

/** Prints in one line what is wrong. @returns the exit code */
async function fail(error: unknown): Promise<number> {
  if (error instanceof CommanderError && isHelp(error)) return error.exitCode === 0 ? 0 : 2;
  const { code, message } = await asFailure(error);
  const { say } = await import('./terminal/print.js');
  if (json) say(JSON.stringify({ error: { code, message } }));
  else {
    const { columnsOf, wrapped } = await import('./terminal/table.js');
    const room = columnsOf(process.stderr);
    const text = code === 'UNEXPECTED' ? inspect(error) : `piecework: ${message}`;
    const parts = IN_LINES.includes(code) ? text.split('\n') : [text];
    // Only the first line is ours; those that follow are indented.
    const lines = parts.map((line) => wrapped(line, 0, room));
    for (const line of lines.join('\n  ').split('\n')) say(line);
  }
  return WRONG_USAGE.includes(code) ? 2 : 1;
}

/** Whether help or the version was printed instead of running a command. */
function isHelp({ code }: CommanderError): boolean {
  return /[hH]elp|version/.test(code);
}

async function asFailure(error: unknown): Promise<{ code: string; message: string }> {
  if (error instanceof CommanderError) return { code: 'INVALID_OPTION', message: misuse(error) };
  const { code = '', message, syscall } = error as NodeJS.ErrnoException;
  // Loaded before, where it was thrown.
  const { PieceworkError } = await import('@piecework/protocol/contract');
  if (error instanceof PieceworkError) return { code, message: withCause(error) };
  // The system refused something: a stack of our code would not help.
  if (syscall !== undefined) return { code, message };
  return { code: 'UNEXPECTED', message };
}

/** "run: unknown option '--inptu' (did you mean --input?); piecework run --help lists what there is" */
function misuse({ code, message }: CommanderError): string {
  // A word or the value of a flag at a wrong place may be a URL with a password.
  const [first = '', ...more] = message
    .replace(/^error: /, '')
    .replace(/(?<=unknown option '[^'=]*=).*(?=')/, '…')
    .replace(/(?<=unknown command ').*[^\w-].*(?=')/, '…')
    .split('\n');
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
