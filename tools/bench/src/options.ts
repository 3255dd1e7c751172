import { Command, InvalidArgumentError, Option } from 'commander';
import { type ContenderName, contenderNames } from './contenders/index.js';
import { SIZES, type Size } from './figures/ground.js';
import { type FigureName, figureNames } from './figures/index.js';
import type { SeriesSettings } from './series.js';

/** The table of rates, and every figure beside it. */
const parts = ['rates', ...figureNames] as const;

export interface BenchOptions extends SeriesSettings {
  readonly only: readonly ContenderName[];
  /** Whether the table of rates is wanted. */
  readonly rates: boolean;
  readonly figures: readonly FigureName[];
  readonly size: Size;
  readonly aof: boolean;
  readonly compare: string | undefined;
  readonly profile: boolean;
  readonly json: boolean;
  readonly report: string | undefined;
}

interface Flags extends Omit<BenchOptions, 'count' | 'warmUpCount' | 'rates' | 'figures'> {
  readonly figures: readonly (typeof parts)[number][];
  readonly n: number;
  readonly warmUp: number;
  readonly quick?: boolean;
}

const QUICK = { count: 5_000, rounds: 3, warmUpCount: 2_000 };

function positive(text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value > 0) return value;
  throw new InvalidArgumentError('It has to be a whole number from 1 on.');
}

/** Reads the command line; ends the process on wrong usage, with code 2, and on `--help`. */
export function readOptions(args: readonly string[]): BenchOptions {
  const takePart = new Option('--only <names...>', 'contenders that take part')
    .choices(contenderNames)
    .default(contenderNames);
  const command = new Command('bench')
    .description('Measures Piecework beside other queues on one Redis, in one run.')
    .option('--n <count>', 'sub-requests per run, the same for all', positive, 20_000)
    .option('--rounds <count>', 'runs of each, in turn', positive, 5)
    .option(
      '--budget-ms <ms>',
      'longest time of one run; a slower one is cut off',
      positive,
      120_000,
    )
    .option('--concurrency <slots>', 'slots of the worker, and the limit', positive, 100)
    .option('--payload-bytes <bytes>', 'size of a payload as JSON', positive, 100)
    .option('--warm-up <count>', 'sub-requests before the clock runs', positive, 5_000)
    .addOption(takePart)
    .addOption(
      new Option('--figures <names...>', 'what is measured').choices(parts).default(parts, 'all'),
    )
    .addOption(
      new Option('--size <size>', 'of the figures beside the rates').choices(SIZES).default('full'),
    )
    .option(
      '--quick',
      `--n ${QUICK.count} --rounds ${QUICK.rounds} --size quick: minutes, and rough`,
    )
    .option('--aof', 'let Redis write an append-only file', false)
    .option('--compare <rev>', 'Piecework of that revision beside this one, and nothing else')
    .option('--profile', 'where the time of one Piecework run goes, and nothing else', false)
    .option('--json', 'everything measured as JSON', false)
    .option('--report <file>', 'write it as Markdown too; a section written by hand is kept')
    .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2))
    .parse(args, { from: 'user' });
  const { n, warmUp, quick, ...flags } = command.opts<Flags>();
  // Not in the order of the command line: the first is what the others are compared with.
  const only = contenderNames.filter((name) => flags.only.includes(name));
  const figures = figureNames.filter((name) => flags.figures.includes(name));
  const rates = flags.figures.includes('rates');
  const settings = { ...flags, only, rates, figures, count: n, warmUpCount: warmUp };
  if (!quick) return settings;
  const given = (name: string) => command.getOptionValueSource(name) === 'cli';
  return {
    ...settings,
    size: given('size') ? flags.size : 'quick',
    count: given('n') ? n : QUICK.count,
    rounds: given('rounds') ? flags.rounds : QUICK.rounds,
    warmUpCount: given('warmUp') ? warmUp : QUICK.warmUpCount,
  };
}
