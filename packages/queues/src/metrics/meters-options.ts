import { type OptionTable, option, shape } from '@piecework/protocol';

/** Where a metrics server listens, and the prefix of the metrics' names. */
export interface MetricsServer {
  /** @default '127.0.0.1' */
  readonly host?: string | undefined;
  /** @default 2003 for Graphite, 8125 for StatsD */
  readonly port?: number | undefined;
  /**
   * 1 to 200 of A-Z a-z 0-9 _ - and dots. Processes that report to Graphite under the same names overwrite each other's
   * numbers: make host and process part of the prefix. StatsD adds the numbers up.
   * @default 'piecework.ids.' and the name of the queue, with _ in place of dots and colons
   */
  readonly prefix?: string | undefined;
}

export interface MetersOptions {
  /** Time between two readings, in ms, 10 to 86400000. @default 10000 */
  readonly everyMs?: number | undefined;
  /** Carbon's plaintext protocol over TCP. */
  readonly graphite?: MetricsServer | undefined;
  /** StatsD over UDP. Install the package `hot-shots` for it. */
  readonly statsd?: MetricsServer | undefined;
  /** Receives every reading. */
  readonly onReading?: ((reading: MetersReading) => void) | undefined;
  /** Receives every error; reporting continues. @default errors are ignored */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/** What is counted. */
export type MeteredKind = 'added' | 'pulled' | 'completed' | 'failed';

/** Counts since the metered object was opened. */
export type Tally = Readonly<Record<MeteredKind, number>>;

export interface MeteredRate {
  /** Since the metered object was opened. */
  readonly count: number;
  /** Since the last reading. */
  readonly fresh: number;
  readonly perSecond: number;
}

export interface MetersReading {
  /** Time of the reading by this process's clock, in ms since 1970. */
  readonly at: number;
  readonly rates: Readonly<Record<MeteredKind, MeteredRate>>;
  /** undefined when Redis did not answer. */
  readonly gauges: { readonly pending: number; readonly running: number } | undefined;
}

const PREFIX = /^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$/;
const server = shape.exactly({
  host: shape.optional(shape.text(1, 255)),
  port: shape.optional(shape.integer(1, 65_535)),
  prefix: shape.optional(shape.both(shape.text(1, 200), shape.match(PREFIX))),
});
const SERVER_ALLOWED =
  '{ host, port, prefix }: a name, 1 to 65535, 1 to 200 of A-Z a-z 0-9 _ - and single dots';
const isFunction = option.custom(shape.callable, 'a function');

export const metersOptions: OptionTable = {
  everyMs: option.ms(10, 86_400_000, 10_000),
  graphite: option.custom(server, SERVER_ALLOWED),
  statsd: option.custom(server, SERVER_ALLOWED),
  onReading: isFunction,
  onError: isFunction,
};
