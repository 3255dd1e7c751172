import type { QueueMetrics, ScaleQuestion } from './queue-metrics.js';

/** An answer to a program. */
interface Answer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

/** As for `--target-seconds`. */
const LONGEST_TARGET = 86_400;

/**
 * The pages that `piecework exporter` serves, for `servePages` of `piecework/health`.
 *
 * - `/metrics`: for Prometheus.
 * - `/scale?queue=NAME`: for a scaler, as JSON; `seconds=300` another target time, `task=a,b` only these tasks. Without a
 *   queue: the only one.
 * - `/live`: the process works. `/ready`: each queue can be read.
 */
export function queuePages(
  metrics: QueueMetrics,
): Readonly<
  Record<'/metrics' | '/scale' | '/live' | '/ready', (query: URLSearchParams) => Promise<Answer>>
> {
  return {
    '/metrics': async () => ({
      ...{ status: 200, contentType: metrics.contentType, body: await metrics.text() },
    }),
    '/scale': (query) => scaleAnswer(metrics, query),
    '/live': async () => json(200, { live: true }),
    '/ready': async () => {
      const why = await metrics.problems();
      return json(why.length === 0 ? 200 : 503, { ready: why.length === 0, why });
    },
  };
}

/** The answer to a scaler. It is no number when Redis does not answer: a scaler then keeps what it has. */
export async function scaleAnswer(metrics: QueueMetrics, query: URLSearchParams): Promise<Answer> {
  const asked = questionOf(metrics, query);
  if ('error' in asked) return json(400, asked);
  const { queue, ...question } = asked;
  try {
    const scale = await metrics.scale(queue, question);
    return scale
      ? json(200, scale)
      : json(404, { error: `queue: there are ${metrics.queues.join(', ')}` });
  } catch (error) {
    return json(503, { error: (error as Error).message });
  }
}

function questionOf(
  metrics: QueueMetrics,
  query: URLSearchParams,
): (ScaleQuestion & { readonly queue: string }) | { readonly error: string } {
  const unknown = [...query.keys()].find((name) => !['queue', 'seconds', 'task'].includes(name));
  if (unknown !== undefined) return { error: `${unknown}: there are queue, seconds and task` };
  const [only = '', ...others] = metrics.queues;
  const queue = query.get('queue') ?? (others.length === 0 ? only : undefined);
  if (queue === undefined) return { error: `queue: name one of ${metrics.queues.join(', ')}` };
  const seconds = query.get('seconds');
  const target = Number(seconds);
  if (seconds !== null && !(target > 0 && target <= LONGEST_TARGET))
    return { error: `seconds: more than 0, at most ${LONGEST_TARGET}` };
  const tasks = query.get('task');
  return {
    queue,
    ...(seconds === null ? {} : { targetSeconds: target }),
    ...(tasks === null ? {} : { tasks: tasks.split(',') }),
  };
}

function json(status: number, value: object): Answer {
  return { status, contentType: 'application/json', body: `${JSON.stringify(value)}\n` };
}
