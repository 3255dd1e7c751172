// What the command lines of both programs share. All is checked before anything is started.
import { Command } from 'commander';
import { integer, name, redis } from '../option-values.mjs';

/** A program with the options that both have; wrong usage ends it with exit code 2. */
export function programOf(file, about) {
  return new Command(file)
    .description(about)
    .option('--redis <url>', 'default: REDIS_URL', redis)
    .option('--queue <name>', 'queue of both', name, 'throughput')
    .option('--processes <n>', 'how many processes', integer(1, 1_000), 1)
    .allowExcessArguments(false)
    .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2));
}

/** The options of a program that needs a Redis which is there already. */
export function optionsOf(program) {
  const { redis: given, ...options } = program.parse().opts();
  const url = given ?? process.env.REDIS_URL;
  if (!url) program.error('error: a Redis URL is needed, as --redis or in REDIS_URL');
  return { ...options, redis: url };
}
