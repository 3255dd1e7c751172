import {
  type Connection,
  isSilentWorker,
  type QueueCommands,
  redisError,
  type Shards,
  signOfLifeMs,
  TIMES,
} from '@piecework/protocol';
import { error, type Finding, many, ok, some, warning } from '../finding.js';
import { queueTimesAhead } from './times-ahead.js';

/** How many parked requests are checked. */
const PARKED_READ = 1_000;

/** Checks the queue's side as a whole: paused, served, ticked. `now`: time of its server. */
export async function checkQueue(
  connection: Connection,
  queue: QueueCommands,
  now: number,
): Promise<Finding[]> {
  const { client } = connection;
  const { keys } = queue;
  const [open, until, parked, times, first, asleep, workers] = await Promise.all([
    client.hlen(keys.open),
    client.hget(keys.paused, 'until'),
    client.hscan(keys.parked, '0', 'COUNT', PARKED_READ),
    client.hmget(keys.counters, 'tickedAt', 'resumedAt', 'shiftMs'),
    client.zrange(keys.agenda, '0', '0', 'WITHSCORES'),
    client.zcard(keys.wait),
    queue.workers(),
  ]).catch((thrown: unknown) => {
    throw redisError(thrown, 'doctor');
  });
  const [tickedAt = null, resumedAt = null, shiftMs = null] = times;
  const silent = workers.filter((worker) => isSilentWorker(worker, workers.length, now));
  // A running process ticks at least this often; where the workers are idle, perhaps only as often as these report.
  const restMs = Math.max(TIMES.tickMs, ...workers.map((worker) => worker.restMs ?? 0));
  const seldomMs = signOfLifeMs(workers.length, restMs);
  return [
    paused(keys.queue, until, now),
    ...served(
      open,
      workers.length,
      silent.map(({ id, host, pid }) => `${id} (${host}, process ${pid})`),
    ),
    ...(await unserved(queue, parked[1])),
    queueTimesAhead(now, { tickedAt, resumedAt, shiftMs }, workers),
    kept(open, sinceTickMs(now, Number(tickedAt ?? 0), first[1], asleep), seldomMs),
  ];
}

/** Checks whether anything is known of a queue: a wrong name has none of these keys, in any shard. */
export async function checkName({ client }: Connection, shards: Shards): Promise<Finding[]> {
  const counts = shards.all.map(({ keys }) =>
    Promise.all([
      client.hlen(keys.open),
      client.zcard(keys.workers),
      client.zcard(keys.history),
      client.hlen(keys.paused),
    ]),
  );
  if ((await Promise.all(counts)).flat().some((count) => count > 0)) return [];
  const what = `nothing is known of queue ${shards.queue}: no worker, no open request, and nothing in its history`;
  return [warning('queue', what, 'check its name; ignore this if the queue was never used')];
}

function paused(queue: string, until: string | null, now: number): Finding {
  const at = Number(until);
  if (until === null || (at > 0 && at <= now)) return ok('queue', `queue ${queue} is not paused`);
  const end = at === 0 ? 'until somebody resumes it' : `until ${new Date(at).toISOString()}`;
  const advice = 'run `piecework resume --queue-wide` when it may continue';
  return warning('queue', `queue ${queue} is paused ${end}: nothing starts`, advice);
}

const START =
  'start one: `piecework worker --handler FILE`, with the --queue and --shards of this command';

function served(open: number, workers: number, silent: readonly string[]): Finding[] {
  const findings: Finding[] = [];
  if (silent.length > 0) {
    const what = `${many(silent.length, 'worker')} silent for long: ${some(silent)}`;
    const [its, it, hangs] =
      silent.length > 1
        ? ['their logs', 'they were', 'they hang']
        : ['its log', 'it was', 'it hangs'];
    const then =
      silent.length < workers
        ? `the other workers take over when the lease ends`
        : 'no worker is left to take over: start one';
    const advice = `read ${its}: ${it} killed, or ${hangs}; ${then}`;
    findings.push(warning('workers', what, advice));
  }
  if (workers === 0 && open > 0) {
    const what = `no worker is registered; open requests: ${open}`;
    findings.push(warning('workers', what, START));
  }
  return findings.length > 0
    ? findings
    : [ok('workers', `${many(workers, 'worker')}, none silent`)];
}

/** `flat`: id, 'generation task', … of parked requests: a worker that does not serve their task met them. */
async function unserved(queue: QueueCommands, flat: readonly string[]): Promise<Finding[]> {
  const byTask = new Map<string, string[]>();
  for (let i = 0; i < flat.length; i += 2) {
    const task = (flat[i + 1] as string).replace(/^\d+ /, '');
    byTask.set(task, [...(byTask.get(task) ?? []), flat[i] as string]);
  }
  const findings: Finding[] = [];
  for (const [task, ids] of byTask) {
    if (await queue.serves(task)) continue;
    const what = task
      ? `no worker serves task ${task}`
      : 'no worker serves requests without a task';
    findings.push(
      warning(
        'parked',
        `${what}: ${some(ids)}`,
        'start a worker with a handler for it, or cancel these requests',
      ),
    );
  }
  return findings.length > 0
    ? findings
    : [ok('parked', 'no request waits for a worker of its task')];
}

/**
 * For how long a tick of the agenda has been overdue; undefined: there never was one. A process with many agendas
 * ticks each when something is due; a request that is asleep may be woken at any time.
 */
function sinceTickMs(
  now: number,
  tickedAt: number,
  first: string | undefined,
  asleep: number,
): number | undefined {
  const due = asleep > 0 || first === undefined ? tickedAt : Math.max(tickedAt, Number(first));
  return due === 0 ? undefined : now - due;
}

function kept(open: number, sinceMs: number | undefined, seldomMs: number): Finding {
  if (open === 0 || (sinceMs !== undefined && sinceMs <= seldomMs))
    return ok('agenda', open === 0 ? 'nothing is open' : 'what is due is done in time');
  const since = sinceMs === undefined ? 'ever' : `for ${Math.round(sinceMs / 1_000)} s`;
  const what = `no process has looked after the queue ${since}: no retry, deadline or lost worker is noticed`;
  return error('agenda', what, 'start a worker; `piecework doctor --repair` does once what is due');
}
