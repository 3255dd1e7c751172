import { Command, InvalidArgumentError, Option } from 'commander';
import { contenderNames, usualNames } from './contenders/index.js';
import { fleetRowNames } from './figures/fleet.js';
import { type FigureName, figureNames } from './figures/index.js';
import { networkRowNames } from './figures/network.js';
import { smallRequestRowNames } from './figures/small-request.js';
import { type FigureChoice, SIZES, type Size } from './fixture/fixture.js';
import { isWanted } from './fleet/shape.js';
import type { SeriesSettings } from './series.js';

/** The table of rates, and all other figures. */
const parts = ['rates', ...figureNames] as const;

export interface BenchOptions extends SeriesSettings, FigureChoice {
  /** Whether the table of rates is wanted. */
  readonly rates: boolean;
  readonly figures: readonly FigureName[];
  readonly size: Size;
  readonly aof: boolean;
  readonly compare: string | undefined;
  /** Sub-requests of the small requests that are compared; none: one large request is. */
  readonly requestsOf: readonly number[];
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

const rowNames = [...fleetRowNames, ...networkRowNames, ...smallRequestRowNames];

function rowsNamed(text: string, before: readonly string[] = []): string[] {
  const name = text.replaceAll('×', 'x');
  if (rowNames.some((row) => isWanted(row, [name]))) return [...before, name];
  throw new InvalidArgumentError(`The rows are: ${rowNames.join(', ')}.`);
}

/** Reads the command line; ends the process on wrong usage, with code 2, and on `--help`. */
export function readOptions(args: readonly string[]): BenchOptions {
  const takePart = new Option('--only <names...>', 'contenders to measure')
    .choices(contenderNames)
    .default(usualNames);
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
    .option('--warm-up <count>', 'sub-requests before the measurement', positive, 5_000)
    .addOption(takePart)
    .addOption(
      new Option('--figures <names...>', 'what is measured').choices(parts).default(parts, 'all'),
    )
    .option(
      '--rows <names...>',
      'rows of fleet, network and small-request, such as 40x5 or "1 busy"',
      rowsNamed,
      [],
    )
    .option(
      '--processes <most>',
      'processes that the workers of a row of fleet or network share',
      positive,
      1,
    )
    .addOption(
      new Option('--size <size>', 'of the figures beside the rates').choices(SIZES).default('full'),
    )
    .option(
      '--quick',
      `--n ${QUICK.count} --rounds ${QUICK.rounds} --size quick: minutes, and rough`,
    )
    .option('--aof', 'let Redis write an append-only file', false)
    .option('--compare <rev>', 'compare Piecework of that revision with this one, and nothing else')
    .option(
      '--requests-of <sizes...>',
      'with --compare: small requests of so many sub-requests, in short turns',
      (text: string, before: readonly number[] = []) => [...before, positive(text)],
      [],
    )
    .option('--profile', 'show where the time of one Piecework run goes, and nothing else', false)
    .option('--json', 'print all measurements as JSON', false)
    .option('--report <file>', 'also write a Markdown report; a section written by hand is kept')
    .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2))
    .parse(args, { from: 'user' });
  const { n, warmUp, quick, ...flags } = command.opts<Flags>();
  // In their own order, not that of the command line: the others are compared with the first.
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
