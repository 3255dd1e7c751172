import { Command, InvalidArgumentError } from 'commander';

export interface ScalingOptions {
  readonly calls: number;
  readonly lanes: number;
  readonly settled: number;
  readonly events: number;
  readonly scale: number;
  readonly mostWorkers: number;
  readonly real: number;
  readonly from: string | undefined;
  readonly json: boolean;
  readonly write: boolean;
}

function positive(text: string): number {
  const value = Number(text);
  if (value > 0) return value;
  throw new InvalidArgumentError('It has to be a number above 0.');
}

function wholeNumber(text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= 0) return value;
  throw new InvalidArgumentError('It has to be a whole number from 0 on.');
}

/** Reads the command line; ends the process on wrong usage, with code 2, and on `--help`. */
export function readOptions(args: readonly string[]): ScalingOptions {
  return new Command('scaling')
    .description('Measures what each call costs, and simulates fleets and clusters from that.')
    .option('--calls <count>', 'calls of each kind that are measured', positive, 3_000)
    .option('--lanes <count>', 'connections that call side by side', positive, 32)
    .option('--settled <count>', 'sub-requests that each simulation counts', positive, 20_000)
    .option('--events <count>', 'most events of one simulation', positive, 3_000_000)
    .option('--scale <factor>', 'size of the real runs', positive, 1)
    .option('--most-workers <count>', 'simulate no bigger fleets', positive, 10_000)
    .option('--real <count>', 'how many real runs beside the simulation', wholeNumber, 12)
    .option('--from <file>', 'simulate from what was measured before, and measure nothing')
    .option('--json', 'everything as JSON', false)
    .option('--write', 'put the figures into docs/scaling.md and docs/scaling/', false)
    .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2))
    .parse(args, { from: 'user' })
    .opts<ScalingOptions>();
}
