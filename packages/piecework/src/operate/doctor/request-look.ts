import { type Connection, type QueueKeys, redisError, requestKeys } from '@piecework/protocol';

/** Requests that are looked at in one round trip. */
const PAGE = 50;

/** An open id and what both sides say of it, each side at one moment of its own. */
export interface RequestLook {
  readonly id: string;
  /** Under which the queue's side has it open; undefined: it has not (any more). */
  readonly open: string | undefined;
  /** Time of its next attention; undefined: it is on nobody's agenda. */
  readonly agenda: number | undefined;
  /** Whether it is asleep until its tokens have been popped. */
  readonly asleep: boolean;
  /** State of the request; empty: no such key. */
  readonly fields: Readonly<Record<string, string>>;
  /** Delivered and unsettled, all in all and held by the consumer of returned work. */
  readonly pending: number;
  readonly returned: number;
  /** Entries of its stream, and of `due`. */
  readonly entries: number;
  readonly due: number;
  /** Those of `due` that are ready. */
  readonly dueNow: number;
  /** When the last of `due` is ready, by the server's clock; undefined: there is none. */
  readonly dueLast: number | undefined;
}

type Replies = readonly (readonly [Error | null, unknown])[];

/** Pages of looks at these ids. @throws ConnectionError · ServerError */
export async function* looksAt(
  connection: Connection,
  keys: QueueKeys,
  ids: AsyncIterable<string> | Iterable<string>,
  now: number,
): AsyncGenerator<RequestLook[]> {
  let page: string[] = [];
  for await (const id of ids) {
    page.push(id);
    if (page.length < PAGE) continue;
    yield await lookAt(connection, keys, page, now);
    page = [];
  }
  if (page.length > 0) yield await lookAt(connection, keys, page, now);
}

async function lookAt(
  connection: Connection,
  keys: QueueKeys,
  ids: readonly string[],
  now: number,
): Promise<RequestLook[]> {
  try {
    const sides = ids.map(async (id) => {
      const { request, work, due } = requestKeys(id);
      return readAtOnce(connection, [
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
    // Last, so that what came into being meanwhile has its place by now.
    const queueSide = await readAtOnce(connection, [
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
      ...requestSide(replies[i] as Replies),
    }));
  } catch (thrown) {
    throw redisError(thrown, 'doctor');
  }
}

/**
 * At one moment. A full server refuses to queue even reads (EXECABORT), so there they are sent one behind the
 * other: something may happen in between, and what looks wrong is looked at again anyway.
 */
async function readAtOnce({ client }: Connection, reads: (string | number)[][]): Promise<Replies> {
  try {
    return (await client.multi(reads).exec()) as Replies;
  } catch (thrown) {
    if (!isFull(thrown)) throw thrown;
    return (await client.pipeline(reads).exec()) as Replies;
  }
}

function isFull(thrown: unknown): boolean {
  const { message = '', previousErrors = [] } = thrown as {
    message?: string;
    previousErrors?: readonly Error[];
  };
  return [message, ...previousErrors.map((error) => error.message)].some((text) =>
    /^OOM\b/.test(text),
  );
}

function requestSide(replies: Replies) {
  // A stream that is not there has no groups and answers an error.
  const [group] = optional(replies[1]) as unknown[][];
  const consumers = (optional(replies[2]) as unknown[][]).map(recordOf);
  const [, last] = unwrap(replies[6]) as string[];
  const returned = consumers.find(({ name }) => name === '~')?.['pending'];
  return {
    fields: recordOf(unwrap(replies[0])) as Record<string, string>,
    pending: Number(recordOf(group ?? [])['pending'] ?? 0),
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

/** A flat reply, or what ioredis made of it. */
function recordOf(reply: unknown): Record<string, unknown> {
  if (!Array.isArray(reply)) return (reply ?? {}) as Record<string, unknown>;
  const found: Record<string, unknown> = {};
  for (let i = 0; i < reply.length; i += 2) found[String(reply[i])] = reply[i + 1];
  return found;
}
