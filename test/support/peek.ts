import { indexOf, PRIORITIES, type ResultRecord } from '@piecework/protocol';
import { clockOffset } from './clock.js';
import { READ_COMPACT, stateOf } from './compact.js';
import type { Scene } from './given.js';
import { keysLeft } from './leaks.js';
import { unpacked } from './payloads.js';

/*
 * Reads the whole state of a request and of a queue back, in the words of the domain, by plain
 * commands and not by the scripts that are under test, and says what must never be.
 */

export interface Counts {
  total: number;
  ready: number;
  inFlight: number;
  delayed: number;
  succeeded: number;
  failed: number;
  cancelled: number;
}

export interface Pending {
  readonly index: number;
  readonly owner: string;
  readonly deliveries: number;
}

/** A request as it is. Sub-requests go by their index. */
export interface Picture {
  /** 'none': no key. */
  status: string;
  generation: number;
  outcome: string;
  counts: Counts;
  limit: number;
  granted: number;
  permits: Record<string, number>;
  leases: Record<string, number>;
  out: number;
  outBefore: number;
  epoch: number;
  /** Delivered and not settled. */
  pending: Pending[];
  /** index → time at which it is ready. */
  due: Record<number, number>;
  tries: Record<string, number>;
  /** index → crashes so far. */
  crashes: Record<string, number>;
  /** index → worker that was to run it alone. */
  alone: Record<string, string>;
  failed: Record<string, string>;
  results: ResultRecord[];
  /** Indexes of what the stream still holds. */
  work: number[];
  consumers: string[];
  fields: Record<string, string>;
  /** Server time of the scripts. */
  now: number;
}

type Replies = [Error | null, unknown][];

const toRecord = (flat: unknown): Record<string, string> => {
  if (!Array.isArray(flat)) return (flat ?? {}) as Record<string, string>;
  const fields: Record<string, string> = {};
  for (let i = 0; i < flat.length; i += 2) fields[flat[i] as string] = flat[i + 1] as string;
  return fields;
};

const numbers = (record: Record<string, string>): Record<string, number> =>
  Object.fromEntries(Object.entries(record).map(([key, value]) => [key, Number(value)]));

const startingWith = (prefix: string, fields: Record<string, string>): Record<string, number> =>
  Object.fromEntries(
    Object.entries(fields)
      .filter(([field]) => field.startsWith(prefix))
      .map(([field, value]) => [field.slice(prefix.length), Number(value)]),
  );

/** Reads a request. */
export async function peek({ request, connection }: Scene): Promise<Picture> {
  const { keys } = request;
  const { client } = connection;
  const replies = (await client
    .pipeline([
      ['evalBuffer', READ_COMPACT, 1, keys.request],
      ['xrange', keys.work, '-', '+'],
      ['xinfo', 'GROUPS', keys.work],
      ['xinfo', 'CONSUMERS', keys.work, 'workers'],
      ['xpending', keys.work, 'workers', '-', '+', 100_000],
      ['zrange', keys.due, 0, -1, 'WITHSCORES'],
      ['hgetall', keys.tries],
      ['hgetall', keys.failed],
      ['xrange', keys.results, '-', '+'],
      ['eval', "local t = redis.call('TIME') return t[1] * 1000 + t[2] / 1000", 1, keys.request],
    ])
    .exec()) as Replies;
  const reply = (i: number) => (replies[i]?.[0] ? null : replies[i]?.[1]);
  const [flat, items, only] = (reply(0) ?? [[], null, []]) as Compact;
  const fields = toRecord(flat.map(String));
  const payloads = unpacked(items ?? Buffer.alloc(0));
  const stream =
    reply(1) && !items
      ? (reply(1) as [string, string[]][]).map(([entry]) => entry)
      : payloads.map((_, index) => `${fields['generation']}-${index}`);
  const permits = startingWith('permits:', fields);
  // A worker that has a compact request has all of it.
  const [holder] = payloads.length > 0 ? Object.keys(permits) : [];
  const group = toRecord((reply(2) as unknown[][] | null)?.[0] ?? []);
  const consumers = holder
    ? [holder]
    : ((reply(3) ?? []) as unknown[][]).map((one) => toRecord(one)['name'] ?? '');
  const pending = holder
    ? payloads.map((_, index) => ({ index, owner: holder, deliveries: 1 }))
    : ((reply(4) ?? []) as [string, string, number, number][]).map(
        ([entry, owner, , deliveries]) => ({ index: indexOf(entry), owner, deliveries }),
      );
  const due: Record<number, number> = {};
  const flatDue = (reply(5) ?? []) as string[];
  for (let i = 0; i < flatDue.length; i += 2) {
    due[indexOf(flatDue[i] as string)] = Number(flatDue[i + 1]);
  }
  const now = Number(reply(9)) + clockOffset();
  const delivered = holder ? payloads.length - 1 : indexAfter(group['last-delivered-id']);
  const unread = stream.filter((entry) => indexOf(entry) > delivered).length;
  const held = Object.values(due);
  const dueNow = held.filter((at) => at <= now).length;
  const { plain, crashes, alone } = triesOf(toRecord(reply(6)));
  const number = (field: string) => Number(fields[field] ?? 0);
  return {
    status: fields['status'] ?? 'none',
    generation: number('generation'),
    outcome: fields['outcome'] ?? '',
    counts: {
      total: number('total'),
      ready: unread + dueNow,
      inFlight: pending.filter(({ owner }) => owner !== '~').length,
      delayed: held.length - dueNow,
      succeeded: number('succeeded'),
      failed: number('failed'),
      cancelled: number('cancelled'),
    },
    limit: number('limit'),
    granted: number('granted'),
    permits,
    leases: startingWith('lease:', fields),
    out: number('out'),
    outBefore: number('outBefore'),
    epoch: number('epoch'),
    pending,
    due,
    tries: numbers(plain),
    crashes,
    alone,
    failed: toRecord(reply(7)),
    results: [...asRecords(only), ...((reply(8) ?? []) as StreamRecord[])].flatMap(
      ([position, flat]) =>
        recordsOf(flat).filter(
          (record) => !takenBack(record, position, fields, toRecord(reply(7))),
        ),
    ),
    work: stream.map(indexOf),
    consumers,
    fields,
    now,
  };
}

type StreamRecord = readonly [string, readonly string[]];

/** What READ_COMPACT answers of a compact request. */
type Compact = [Buffer[], Buffer | null, readonly (readonly [Buffer, readonly Buffer[]])[]];

const asRecords = (only: Compact[2]): StreamRecord[] =>
  only.map(([position, flat]) => [String(position), flat.map(String)]);

/** What is kept of the runs that came to nothing: failed attempts, and crashes. */
function triesOf(fields: Record<string, string>) {
  const plain: Record<string, string> = {};
  const crashes: Record<string, number> = {};
  const alone: Record<string, string> = {};
  for (const [field, value] of Object.entries(fields)) {
    const [index, what] = field.split(':') as [string, string?];
    if (what === undefined) plain[index] = value;
    else if (what === 'crashes') crashes[index] = Number(value);
    else if (what === 'alone') alone[index] = value;
  }
  return { plain, crashes, alone };
}

/** Whether it is a failure of an earlier life that was redriven since. */
function takenBack(
  { index, failed }: ResultRecord,
  position: string,
  fields: Record<string, string>,
  failures: Record<string, string>,
): boolean {
  const life = position.slice(0, position.indexOf('-'));
  return (
    failed && life !== fields['generation'] && !failures[`${index}:runs`]?.startsWith(`${life} `)
  );
}

const indexAfter = (id = '0-0') => (id === '0-0' ? -1 : indexOf(id));

const recordsOf = (flat: readonly string[]): ResultRecord[] =>
  Object.entries(toRecord(flat)).flatMap(([field, value]): ResultRecord[] => {
    if (field.startsWith('!')) return [{ index: Number(field.slice(1)), failed: true, value }];
    const [, ...successes] = value.split('\x1e');
    return successes.map((text) => ({
      index: Number.parseInt(text, 10),
      failed: false,
      value: text.slice(text.indexOf(' ') + 1),
    }));
  });

/** What must never be, of a picture; empty when all is well. */
export function faultsOf(picture: Picture): string[] {
  const faults: string[] = [];
  const { counts, permits, leases, pending, due } = picture;
  const active = ['open', 'sealed', 'cancelling'].includes(picture.status);
  const settled = counts.succeeded + counts.failed + counts.cancelled;
  const held = Object.values(permits).reduce((sum, n) => sum + n, 0);
  for (const [name, n] of Object.entries(counts)) if (n < 0) faults.push(`${name} is ${n}`);
  for (const [name, n] of Object.entries({ out: picture.out, outBefore: picture.outBefore })) {
    if (n < 0) faults.push(`${name} is ${n}`);
  }
  if (new Set(picture.results.map(({ index }) => index)).size !== picture.results.length) {
    faults.push('an index has two results');
  }
  if (picture.fields['results'] === 'keep') {
    const failures = picture.results.filter(({ failed }) => failed).length;
    if (failures !== counts.failed) faults.push(`${failures} failures recorded, not counted`);
    if (picture.results.length - failures !== counts.succeeded) {
      faults.push(`${picture.results.length - failures} successes recorded, not counted`);
    }
  }
  if (!active) {
    const { tries, crashes } = picture;
    const left = { pending, due: Object.keys(due), tries: Object.keys({ ...tries, ...crashes }) };
    for (const [key, list] of Object.entries(left)) {
      if (list.length > 0) faults.push(`${key} outlived the request`);
    }
    return faults;
  }
  const sum = counts.ready + counts.inFlight + counts.delayed + settled;
  if (counts.total !== sum) faults.push(`total ${counts.total} is not the sum ${sum}`);
  if (held !== picture.granted) faults.push(`granted ${picture.granted}, permits ${held}`);
  if (picture.granted > picture.limit) faults.push('granted above the limit');
  if (Object.keys(permits).sort().join() !== Object.keys(leases).sort().join()) {
    faults.push('permits without a lease, or a lease without permits');
  }
  if (Object.values(permits).some((n) => n <= 0)) faults.push('permits of nothing');
  const most = Number(picture.fields['maxCrashes'] ?? 3);
  for (const [index, n] of Object.entries(picture.crashes)) {
    // With more, one goes on as long as it did not crash alone.
    if (most === 1) faults.push(`${index} goes on after ${n} crashes`);
  }
  const parked = pending.filter(({ owner }) => owner === '~').map(({ index }) => index);
  const members = Object.keys(due).map(Number);
  if (parked.sort((a, b) => a - b).join() !== members.sort((a, b) => a - b).join()) {
    faults.push(`due ${members} is not what ~ owns: ${parked}`);
  }
  const open = new Set(pending.map(({ index }) => index));
  for (const { index } of picture.results) {
    if (open.has(index)) faults.push(`${index} is settled and pending`);
  }
  if (picture.status !== 'open' && settled >= counts.total) faults.push('settled, not complete');
  return faults;
}

/** Reads a request and throws when something is that must not be. */
export async function inspect(scene: Scene): Promise<Picture> {
  const picture = await peek(scene);
  const faults = faultsOf(picture);
  if (faults.length > 0) {
    throw new Error(`${faults.join('; ')}\n${JSON.stringify(picture, undefined, 1)}`);
  }
  return picture;
}

/** A queue as it is. */
export interface QueuePicture {
  open: Record<string, number>;
  agenda: Record<string, number>;
  wait: Record<string, { priority: number; mark: number }>;
  marks: Record<string, string>;
  pushed: Record<string, number>;
  parked: Record<string, string>;
  /** Tokens by priority, those served first at the front; only lists that exist. */
  lists: Record<number, string[]>;
  /** The same of the lanes that are used. */
  lanes: Record<number, string[]>;
  counters: Record<string, number>;
  history: Record<string, number>;
  workers: Record<string, number>;
  workerInfo: Record<string, string>;
}

/** Reads a queue; of its lists those of `priorities`. */
export async function peekQueue(
  { queue, connection }: Scene,
  priorities: readonly number[] = Array.from({ length: PRIORITIES }, (_, i) => i),
): Promise<QueuePicture> {
  const { keys } = queue;
  const replies = (await connection.client
    .pipeline([
      ['hgetall', keys.open],
      ['zrange', keys.agenda, 0, -1, 'WITHSCORES'],
      ['zrange', keys.wait, 0, -1, 'WITHSCORES'],
      ['hgetall', keys.marks],
      ['hgetall', keys.pushed],
      ['hgetall', keys.parked],
      ['hgetall', keys.counters],
      ['zrange', keys.history, 0, -1, 'WITHSCORES'],
      ['zrange', keys.workers, 0, -1, 'WITHSCORES'],
      ['hgetall', keys.workerInfo],
      ...priorities.map((priority) => ['lrange', keys.list(priority), 0, -1]),
    ])
    .exec()) as Replies;
  const record = (i: number) => toRecord(replies[i]?.[1]);
  const lists: Record<number, string[]> = {};
  for (const [i, priority] of priorities.entries()) {
    const tokens = (replies[10 + i]?.[1] ?? []) as string[];
    if (tokens.length > 0) lists[priority] = tokens.reverse();
  }
  const { lanes: used = '', ...pushed } = record(4);
  const lanes: Record<number, string[]> = {};
  for (const priority of used === '' ? [] : used.split(',').map(Number))
    lanes[priority] = (await connection.client.lrange(keys.lane(priority), 0, -1)).reverse();
  const span = 2 ** 44;
  const wait = Object.entries(numbers(record(2))).map(([id, score]) => {
    return [id, { priority: Math.floor(score / span), mark: score % span }];
  });
  return {
    open: numbers(record(0)),
    agenda: numbers(record(1)),
    wait: Object.fromEntries(wait),
    marks: record(3),
    pushed: numbers(pushed),
    parked: record(5),
    lists,
    lanes,
    counters: numbers(record(6)),
    history: numbers(record(7)),
    workers: numbers(record(8)),
    workerInfo: record(9),
  };
}

/** What must never be, of a queue; empty when all is well. */
export function queueFaultsOf(picture: QueuePicture): string[] {
  const faults: string[] = [];
  const { open, agenda, wait, marks, parked, pushed, lists } = picture;
  for (const id of Object.keys(open)) {
    if (!(id in agenda) && !(id in wait)) faults.push(`${id} is in neither agenda nor wait`);
  }
  for (const [key, ids] of Object.entries({ wait, marks, parked })) {
    for (const id of Object.keys(ids))
      if (!(id in open)) faults.push(`${id} in ${key} is not open`);
  }
  for (const id of Object.keys(wait)) if (!(id in marks)) faults.push(`${id} waits without a mark`);
  for (const [priority, tokens] of Object.entries(lists)) {
    const ever = pushed[priority] ?? 0;
    if (ever < tokens.length) faults.push(`list ${priority} is longer than ever pushed`);
  }
  return faults;
}

/** Reads a queue and throws when something is that must not be. */
export async function inspectQueue(scene: Scene): Promise<QueuePicture> {
  const picture = await peekQueue(scene);
  const faults = queueFaultsOf(picture);
  if (faults.length > 0) {
    throw new Error(`${faults.join('; ')}\n${JSON.stringify(picture, undefined, 1)}`);
  }
  return picture;
}

/**
 * Everything that Redis holds of a request and its queue, key by key, to compare two states. Times
 * (and generations, which are times) are all the same here.
 */
export async function snapshot(scene: Scene): Promise<Record<string, string>> {
  const { client } = scene.connection;
  const state: Record<string, string> = {};
  for (const key of await keysLeft(scene)) {
    const type = await client.type(key);
    const values: unknown[] = [type, (await client.pttl(key)) > 0 ? 'goes' : 'stays'];
    if (type === 'hash') values.push(Object.entries(await client.hgetall(key)).sort());
    else if (type === 'zset')
      values.push(await client.call('zrange', key, '0', '-1', 'WITHSCORES'));
    else if (type === 'list') values.push(await client.lrange(key, 0, -1));
    else if (key === scene.request.keys.request && type === 'string') {
      values.push(Object.entries(await stateOf(client, key)).sort());
      values.push(((await client.eval(READ_COMPACT, 1, key)) as unknown[])[2]);
    } else if (type === 'string') values.push(await client.get(key));
    else {
      values.push(await client.call('xrange', key, '-', '+'));
      const groups = (await client.call('xinfo', 'GROUPS', key)) as unknown[][];
      // What is left of a life whose retention was short has no group.
      if (groups.length > 0 && key === scene.request.keys.work) {
        const pending = await client.call('xpending', key, 'workers', '-', '+', '1000');
        const rows = pending as unknown[][];
        values.push(rows.map(([entry, owner, , deliveries]) => [entry, owner, deliveries]));
        values.push(toRecord(groups[0])['last-delivered-id']);
      }
    }
    state[key] = JSON.stringify(values).replaceAll(/\d{13}/g, 'T');
  }
  return state;
}
