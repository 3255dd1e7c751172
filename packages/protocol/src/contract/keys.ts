/**
 * The data model: every Redis key of Piecework, built here and nowhere else.
 *
 * Keys are on two sides. The queue side has the hash tag `{<queue>}`: who waits, in which order, and what has to happen
 * later. The request side has the hash tag `{<id>}`: the work itself, its state, its permits, its outcome. No script
 * touches both sides (invariant I8), except `submit`, which is called only where one server has both. All other calls
 * that concern both sides have one right order, and the agenda repairs those that were interrupted (docs/protocol.md).
 * Which keys of a request exist together: docs/state-machine.md.
 */

/** Number of priority lists of a queue; priority 0 is served first. */
export const PRIORITIES = 100;

export interface QueueKeys {
  readonly queue: string;
  /** hash · id → generation of every open request · the field is removed when the request finishes */
  readonly open: string;
  /** zset · id → server time in ms of its next tend */
  readonly agenda: string;
  /**
   * zset · id → priority·2^44 + mark: asleep until its list has been popped up to the mark; expedited: (100 +
   * priority)·2^44 + due
   */
  readonly wait: string;
  /** hash · id → 'epoch' whose tokens are still out, or 'epoch:passedAt' once all were popped */
  readonly marks: string;
  /**
   * hash · priority → tokens ever pushed to its list; popped so far = that − LLEN · 'lanes' → priorities whose lanes
   * are used
   */
  readonly pushed: string;
  /** hash · id → 'generation task' of parked requests */
  readonly parked: string;
  /** zset · 'task\0id' of parked requests, all of score 0 */
  readonly parkedByTask: string;
  /** zset · 'id~generation' → when to unlink its keys, of ended requests that keep much · expires after the last */
  readonly spent: string;
  /**
   * hash · last generation given out, ended requests by outcome, times of the last tick and of the last return of Redis
   * · expires a week after the last request has ended, not while one is open
   */
  readonly counters: string;
  /** zset · id → time of its end · the last 1,000, a week at most */
  readonly history: string;
  /** zset · error → when · the last 100 errors of the queue */
  readonly errors: string;
  /** zset · boot id → time of its last sign of life · expires with the fleet */
  readonly workers: string;
  /** hash · boot id → JSON about the worker */
  readonly workerInfo: string;
  /** list · intervals of ten seconds, the latest left, at most an hour · expires an hour after the last report */
  readonly series: string;
  /** hash · 'until': when the pause of the queue ends by itself, 0: never · while it is paused, until the next tick */
  readonly paused: string;
  /** shard channel · '<verb> <id> <generation>' for workers: check this request; or a pause or resume of the queue */
  readonly control: string;
  /** list · tokens `id~generation~epoch` of one priority · pushed left, popped right, never else */
  readonly list: (priority: number) => string;
  /** list · tokens `id~generation~epoch~due` of expedited requests, served before those of the list, in due order */
  readonly lane: (priority: number) => string;
  /** string · id of the request that was submitted last under this key of deduplication · expires after its period */
  readonly dedupe: (key: string) => string;
  /** string · JSON about the `piecework run` that works on this request · expires 15 s after its last sign of life */
  readonly runner: (id: string) => string;
  /** All 100 priority lists in the order in which they are served. */
  readonly lists: readonly string[];
}

export interface RequestKeys {
  readonly id: string;
  /**
   * hash · options, counters, permits and leases per worker; string, of a compact request: all of this with its
   * sub-requests, or with its results · TTL after completion
   */
  readonly request: string;
  /**
   * stream · entries `<generation>-<index>`, group `workers`; none, of a compact request · gone at completion; empty,
   * with a TTL, after a short retention
   */
  readonly work: string;
  /** zset · entry → when it is ready, 0: now; consumer `~` owns all of them · gone at completion */
  readonly due: string;
  /**
   * hash · index → failed attempts; 'index:crashes', 'index:alone' (worker), 'index:company', 'index:checkpoint' (JSON)
   * · gone at completion
   */
  readonly tries: string;
  /** hash · index → what its running handler last reported · gone at completion */
  readonly progress: string;
  /**
   * hash · index → error JSON, 'index:payload' → payload, 'index:runs' → 'generation attempts crashes' · TTL after
   * completion
   */
  readonly failed: string;
  /**
   * stream · `<generation>-<settled + moved>`: index, result or !index, attempts, …; none, of a compact request · TTL
   * after completion
   */
  readonly results: string;
  /** shard channel · '<generation> <outcome>' at completion */
  readonly channel: string;
}

/** The queues used last, the latest at the end. Each takes about 8 KB, mostly names of lists. */
const queues = new Map<string, QueueKeys>();
const QUEUES_KEPT = 1_000;

/** Keys of a queue. Those of the queues used last are cached. */
export function queueKeys(queue: string): QueueKeys {
  const known = queues.get(queue);
  if (known) {
    queues.delete(queue);
    queues.set(queue, known);
    return known;
  }
  const tag = `{${queue}}`;
  const keys: QueueKeys = {
    queue,
    open: `${tag}:open`,
    agenda: `${tag}:agenda`,
    wait: `${tag}:wait`,
    marks: `${tag}:marks`,
    pushed: `${tag}:pushed`,
    parked: `${tag}:parked`,
    parkedByTask: `${tag}:parked-by-task`,
    spent: `${tag}:spent`,
    counters: `${tag}:counters`,
    history: `${tag}:history`,
    errors: `${tag}:errors`,
    workers: `${tag}:workers`,
    workerInfo: `${tag}:worker-info`,
    series: `${tag}:series`,
    paused: `${tag}:paused`,
    control: `${tag}:control`,
    list: (priority) => `${tag}:${priority}`,
    dedupe: (key) => `${tag}:dedupe:${key}`,
    runner: (id) => `${tag}:runner:${id}`,
    lane: (priority) => `${tag}:${priority}:due`,
    lists: Array.from({ length: PRIORITIES }, (_, priority) => `${tag}:${priority}`),
  };
  queues.set(queue, keys);
  // cure: cached key names are evicted
  if (queues.size > QUEUES_KEPT) queues.delete(queues.keys().next().value as string);
  return keys;
}

/** The keys of the requests whose keys were asked for last: each part that works on a request asks for them. */
const requests = new Map<string, RequestKeys>();
const REQUESTS_KEPT = 200;

/** Keys of a request. Those of the requests used last are cached. */
export function requestKeys(id: string): RequestKeys {
  const known = requests.get(id);
  if (known) return known;
  const keys = requestKeysOf(id);
  if (requests.size === REQUESTS_KEPT) requests.delete(requests.keys().next().value as string);
  requests.set(id, keys);
  return keys;
}

function requestKeysOf(id: string): RequestKeys {
  return {
    id,
    request: `request:{${id}}`,
    work: `sub:{${id}}`,
    due: `due:{${id}}`,
    tries: `tries:{${id}}`,
    progress: `progress:{${id}}`,
    failed: `failed:{${id}}`,
    results: `results:{${id}}`,
    channel: `done:{${id}}`,
  };
}

/** Parses a token of a priority list. */
export function parseToken(token: string): { id: string; generation: number; epoch: string } {
  const [id = '', generation = '', epoch = ''] = token.split('~');
  return { id, generation: Number(generation), epoch };
}

/** The index of a sub-request from its stream entry `<generation>-<index>`. */
export function indexOf(entry: string): number {
  return Number(entry.slice(entry.indexOf('-') + 1));
}
