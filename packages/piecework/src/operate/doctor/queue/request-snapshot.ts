import {
  type Connection,
  isOtherType,
  type QueueKeys,
  RequestReads,
  redisError,
  requestKeys,
} from '@piecework/protocol';

/** Requests that are read in one round trip. */
const PAGE = 50;

/** What both sides know of an open id, each side at one moment of its own. */
export interface RequestSnapshot {
  readonly id: string;
  /** The generation that the queue's side has open; undefined: none (any more). */
  readonly open: string | undefined;
  /** When it is tended next; undefined: it is not on the agenda. */
  readonly agenda: number | undefined;
  /** Whether it is asleep until its tokens have been popped. */
  readonly asleep: boolean;
  /** State of the request; empty: no such key. */
  readonly fields: Readonly<Record<string, string>>;
  /** Delivered and unsettled: all, and of these what the consumer of returned work owns. */
  readonly pending: number;
  /** How many it has not delivered yet; undefined: the server does not know. */
  readonly unread: number | undefined;
  readonly returned: number;
  /** Entries of its stream, and of `due`. */
  readonly entries: number;
  readonly due: number;
  /** Those of `due` that are ready. */
  readonly dueNow: number;
  /** When the last of `due` is ready, by the server's clock; undefined: there is none. */
  readonly dueLast: number | undefined;
}

type RequestSide = Omit<RequestSnapshot, 'id' | 'open' | 'agenda' | 'asleep'>;

type Replies = readonly (readonly [Error | null, unknown])[];

/** Snapshots of these ids, in pages. @throws ConnectionError · ServerError */
export async function* readSnapshots(
  connection: Connection,
  keys: QueueKeys,
  ids: AsyncIterable<string> | Iterable<string>,
  now: number,
): AsyncGenerator<RequestSnapshot[]> {
  let page: string[] = [];
  for await (const id of ids) {
    page.push(id);
    if (page.length < PAGE) continue;
    yield await readPage(connection, keys, page, now);
    page = [];
  }
  if (page.length > 0) yield await readPage(connection, keys, page, now);
}

async function readPage(
  connection: Connection,
  keys: QueueKeys,
  ids: readonly string[],
  now: number,
): Promise<RequestSnapshot[]> {
  try {
    const sides = ids.map(async (id) => {
      const { request, work, due } = requestKeys(id);
      return readTogether(connection, [
        ['hgetall', request],
        ['xinfo', 'GROUPS', work],
        ['xinfo', 'CONSUMERS', work, 'workers'],
        ['xlen', work],
        ['zcard', due],
        ['zcount', due, '-inf', now],
        ['zrange', due, -1, -1, 'WITHSCORES'],
      ]);
    });
    const replies = await Promise.all(sides);
    const requests = await Promise.all(
      replies.map((reply, i) =>
        isCompact(reply) ? compactSide(connection, ids[i] as string) : requestSide(reply),
      ),
    );
    // Last: a request that was created meanwhile is on the queue side by now.
    const queueSide = await readTogether(connection, [
      ['hmget', keys.open, ...ids],
      ['zmscore', keys.agenda, ...ids],
      ['zmscore', keys.wait, ...ids],
    ]);
    const [open, agenda, wait] = queueSide.map(unwrap) as (string | null)[][];
    return ids.map((id, i) => ({
      id,
      open: open?.[i] ?? undefined,
      agenda: agenda?.[i] ? Number(agenda[i]) : undefined,
      asleep: Boolean(wait?.[i]),
      ...(requests[i] as RequestSide),
    }));
  } catch (thrown) {
    throw redisError(thrown, 'doctor');
  }
}

/** Reads in one trip. Other calls may fall in between; a suspicion is checked twice. */
const readTogether = async ({ client }: Connection, reads: (string | number)[][]) =>
  (await client.pipeline(reads).exec()) as Replies;

/** Whether its state and its sub-requests are one string (lua/lib/compact). */
function isCompact([state]: Replies): boolean {
  const error = state?.[0];
  return Boolean(error && isOtherType(error));
}

/** Of a compact request, which is read once more: one worker has all of it, or nobody has any. */
async function compactSide(connection: Connection, id: string): Promise<RequestSide> {
  const read = await new RequestReads(connection, id).inspect();
  const { state = {}, ready = 0, inFlight = 0, delayed = 0 } = read ?? {};
  const entries = ready + inFlight + delayed;
  return {
    ...{ fields: state, pending: inFlight, unread: undefined, returned: 0, entries },
    ...{ due: 0, dueNow: 0, dueLast: undefined },
  };
}

function requestSide(replies: Replies): RequestSide {
  // A missing stream answers an error.
  const [group] = optional(replies[1]) as unknown[][];
  const consumers = (optional(replies[2]) as unknown[][]).map(recordOf);
  const [, last] = unwrap(replies[6]) as string[];
  const fields = recordOf(unwrap(replies[0])) as Record<string, string>;
  const known = recordOf(group ?? []);
  const returned = consumers.find(({ name }) => name === '~')?.['pending'];
  return {
    fields,
    pending: Number(known['pending'] ?? 0),
    // Redis does not always know it.
    unread: known['lag'] === undefined || known['lag'] === null ? undefined : Number(known['lag']),
    returned: Number(returned ?? 0),
    entries: Number(unwrap(replies[3])),
    due: Number(unwrap(replies[4])),
    dueNow: Number(unwrap(replies[5])),
    dueLast: last === undefined ? undefined : Number(last),
  };
}

function unwrap(reply: Replies[number] | undefined): unknown {
  if (reply?.[0]) throw reply[0];
  return reply?.[1];
}

function optional(reply: Replies[number] | undefined): unknown {
  return /no such key|NOGROUP/.test(reply?.[0]?.message ?? '') ? [] : unwrap(reply);
}

/** A flat reply, or the object that ioredis made of it. */
function recordOf(reply: unknown): Record<string, unknown> {
  if (!Array.isArray(reply)) return (reply ?? {}) as Record<string, unknown>;
  const found: Record<string, unknown> = {};
  for (let i = 0; i < reply.length; i += 2) found[String(reply[i])] = reply[i + 1];
  return found;
}
