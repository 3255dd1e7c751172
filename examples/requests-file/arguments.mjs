// The command line of this sample. Everything is checked here, before anything is started or written.
import { statSync } from 'node:fs';
import { Command, InvalidArgumentError } from 'commander';
import { integer, name, redis } from '../option-values.mjs';

function priority(text) {
  return text === 'line' ? text : integer(0, 99)(text);
}

function file(path) {
  // It is read twice, which a pipe would not allow.
  if (statSync(path, { throwIfNoEntry: false })?.isFile()) return path;
  throw new InvalidArgumentError('It is not a file.');
}

/** File and options that the user gave; ends the process with exit code 2 when they are wrong. */
export function readArguments() {
  const program = new Command('requests-file.mjs')
    .description('Submits every line of a file as a request of its own.')
    .argument('<file>', 'lines limit:part:part:… with # comments', file)
    .option('--redis <url>', 'default: REDIS_URL, else an embedded Redis', redis)
    .option('--queue <name>', 'default: a new one, so that no other worker takes part', name)
    .option('--processes <n>', 'worker processes', integer(1, 1_000), 2)
    .option('--concurrency <n>', 'slots per worker process', integer(1, 10_000), 10)
    .option('--priority <p>', '0 (first) to 99 for all, or line: earlier lines first', priority, 50)
    .option('--window <n>', 'requests that are open at once', integer(1, 100_000), 1_000)
    .option('--work-ms <ms>', 'how long each part takes', integer(0, 3_600_000), 0)
    .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2))
    .parse();
  return { file: program.args[0], ...program.opts() };
}
