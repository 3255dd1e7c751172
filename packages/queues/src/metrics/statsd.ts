import { InvalidOptionError } from '@piecework/protocol';
import type { MetersReading, MetricsServer } from './meters-options.js';
import type { MetricsSink } from './metrics-sink.js';

/** `close` waits this long for what is being sent, in ms. */
const CLOSE_MS = 1_000;

/**
 * StatsD over UDP, by `hot-shots` (docs/decisions/0014). What happened since the last reading is sent as counters: the
 * server adds up all processes and computes rates. `pending` and `running` are gauges.
 * @throws InvalidOptionError when `hot-shots` is not installed
 */
export async function openStatsd(
  {
    host = '127.0.0.1',
    port = 8125,
    prefix,
  }: MetricsServer & {
    readonly prefix: string;
  },
  onError: (error: unknown) => void,
): Promise<MetricsSink> {
  const { StatsD } = await import('hot-shots').catch(() => {
    throw new InvalidOptionError('statsd', { host, port }, 'with the package hot-shots installed');
  });
  const client = new StatsD({
    ...{ host, port, prefix: `${prefix}.`, errorHandler: onError },
    // No settings from the environment.
    ...{ includeDataDogTags: false, originDetection: false },
  });
  return {
    send({ rates, gauges }: MetersReading) {
      for (const [kind, { fresh }] of Object.entries(rates)) client.increment(kind, fresh);
      for (const [name, value] of Object.entries(gauges ?? {})) client.gauge(name, value);
    },
    close: () =>
      new Promise((resolve) => {
        const late = setTimeout(resolve, CLOSE_MS);
        client.close(() => {
          clearTimeout(late);
          resolve();
        });
      }),
  };
}
