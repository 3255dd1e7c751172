// What the command lines of both programs share. All is checked before anything is started.
import { Command, InvalidArgumentError } from 'commander';

export const integer = (min, max) => (text) => {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  throw new InvalidArgumentError(`A whole number from ${min} to ${max} is needed.`);
};

function name(text) {
  if (/^[A-Za-z0-9_.:-]{1,128}$/.test(text)) return text;
  throw new InvalidArgumentError('1 to 128 of A-Z a-z 0-9 _ . : - are needed.');
}

function redis(text) {
  if (/^(rediss?:\/\/|unix:\/\/|\/)./.test(text)) return text;
  throw new InvalidArgumentError('A redis:// URL is needed.');
}

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
