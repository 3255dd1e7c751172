import { InvalidOptionError } from '@piecework/protocol/contract';
import { type Answer, json, type PageServer, servePages } from './page-server.js';

/** What `GET /live` and `GET /ready` answer to an orchestrator, as JSON; with status 200 or 503. */
export interface Health {
  /** Whether the process works; if not, it should be restarted. */
  readonly live: boolean;
  /** Whether it takes work. */
  readonly ready: boolean;
  /** Why not, in words; empty when both are true. */
  readonly why: readonly string[];
}

export interface HealthServer extends PageServer {}

/** Metrics for Prometheus, such as a `WorkerMetrics` of `@piecework/metrics`. */
export interface MetricsPage {
  readonly contentType: string;
  text(): Promise<string>;
}

const OPTIONS = ['port', 'host', 'metrics'];

/**
 * Serves health on a port of its own, and metrics at `/metrics` if they are given.
 *
 * ```ts
 * await using health = await serveHealth(() => worker.health(), { port: 8080, host: '0.0.0.0' });
 * ```
 * @param ask `worker.health()`, `fleet.health()`, that of a worker of DelayedTasks, or something of the same shape. Of
 *   several, the process is live and ready if all are
 * @param at `port` 0: a free one. `host`: 127.0.0.1 by default
 * @throws InvalidOptionError when the port cannot be used
 */
export function serveHealth(
  ask: () => Health | readonly Health[] | Promise<Health | readonly Health[]>,
  at: {
    readonly port: number;
    readonly host?: string | undefined;
    readonly metrics?: MetricsPage | undefined;
  },
): Promise<HealthServer> {
  const unknown = Object.entries(at).find(([name]) => !OPTIONS.includes(name));
  if (unknown)
    throw new InvalidOptionError(...unknown, `no such option; options: ${OPTIONS.join(', ')}`);
  const page = (of: 'live' | 'ready') => async (): Promise<Answer> => {
    try {
      const health = together(await ask());
      return json(health[of] ? 200 : 503, health);
    } catch (error) {
      return json(503, { live: false, ready: false, why: [(error as Error).message] });
    }
  };
  const { metrics } = at;
  return servePages(
    {
      ...{ '/live': page('live'), '/ready': page('ready') },
      ...(metrics ? { '/metrics': () => metricsAnswer(metrics) } : {}),
    },
    at,
  );
}

/** The health of a process with several workers. */
function together(health: Health | readonly Health[]): Health {
  if (!isSeveral(health)) return health;
  const live = health.every((one) => one.live);
  const ready = health.every((one) => one.ready);
  const all = { live, ready, why: health.flatMap(({ why }) => why), workers: health };
  return all;
}

const isSeveral = (health: Health | readonly Health[]): health is readonly Health[] =>
  Array.isArray(health);

/** The page that Prometheus reads. */
export async function metricsAnswer(page: MetricsPage): Promise<Answer> {
  const body = await page.text();
  return { status: 200, contentType: page.contentType, body };
}
