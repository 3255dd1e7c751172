import { type OptionTable, option } from '@piecework/protocol';
import { z } from 'zod';

/** Where a server of metrics listens, and what the names of the metrics begin with. */
export interface MetricsServer {
  /** @default '127.0.0.1' */
  readonly host?: string | undefined;
  /** @default 2003 for Graphite, 8125 for StatsD */
  readonly port?: number | undefined;
  /**
   * 1 to 200 of A-Z a-z 0-9 _ - and dots. Two processes that report to Graphite under the same names overwrite
   * each other's numbers: put the host and the process into it. StatsD adds them up.
   * @default 'piecework.ids.' and the name of the queue, with _ for dots and colons
   */
  readonly prefix?: string | undefined;
}

export interface MetersOptions {
  /** Time between two readings, in ms, 10 to 86400000. @default 10000 */
  readonly everyMs?: number | undefined;
  /** Carbon's plaintext protocol over TCP. */
  readonly graphite?: MetricsServer | undefined;
  /** Over UDP. Needs the package `hot-shots`, which is not installed by itself. */
  readonly statsd?: MetricsServer | undefined;
  /** Is given every reading. */
  readonly onReading?: ((reading: MetersReading) => void) | undefined;
  /** Is told what went wrong; reporting goes on. Nothing else is done with it. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/** How much happened so far. */
export interface Tally {
  readonly added: number;
  readonly pulled: number;
  readonly completed: number;
  readonly failed: number;
}

export interface MeteredRate {
  /** Since the metered object began. */
  readonly count: number;
  /** Since the last reading. */
  readonly fresh: number;
  readonly perSecond: number;
}

export interface MetersReading {
  /** By the clock of this process, in ms since 1970. */
  readonly at: number;
  readonly rates: Readonly<Record<keyof Tally, MeteredRate>>;
  /** undefined: Redis did not answer. */
  readonly gauges: { readonly pending: number; readonly running: number } | undefined;
}

const PREFIX = /^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$/;
const server = z.strictObject({
  host: z.string().min(1).max(255).optional(),
  port: z.number().int().min(1).max(65_535).optional(),
  prefix: z.string().max(200).regex(PREFIX).optional(),
});
const SERVER_ALLOWED =
  '{ host, port, prefix }: a name, 1 to 65535, 1 to 200 of A-Z a-z 0-9 _ - and single dots';
const isFunction = option.custom(
  z.custom((value) => typeof value === 'function'),
  'a function',
);

export const metersOptions: OptionTable = {
  everyMs: option.ms(10, 86_400_000, 10_000),
  graphite: option.custom(server, SERVER_ALLOWED),
  statsd: option.custom(server, SERVER_ALLOWED),
  onReading: isFunction,
  onError: isFunction,
};
