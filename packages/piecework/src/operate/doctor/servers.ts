import type { Socket } from 'node:net';
import { type Connection, ConnectionError, type QueueKeys, redisError } from '@piecework/protocol';
import { Cluster, type Redis } from 'ioredis';
import pTimeout from 'p-timeout';

/** A server that holds keys: the one there is, or a master of the cluster. */
export interface Server {
  /** 'host:port' or its socket. */
  readonly name: string;
  readonly client: Redis;
  readonly info: Info;
}

/** What INFO said. */
export class Info {
  readonly #fields: ReadonlyMap<string, string>;

  constructor(text: string) {
    const lines = text.split(/\r?\n/).filter((line) => /^\w+:/.test(line));
    this.#fields = new Map(
      lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]),
    );
  }

  /** '' when it said nothing of it. */
  text(field: string): string {
    return this.#fields.get(field) ?? '';
  }

  /** 0 when it said nothing of it. */
  number(field: string): number {
    return Number(this.text(field)) || 0;
  }

  /** The fields of this name with a number behind it, as slave0, slave1. */
  numbered(name: string): string[] {
    const ofName = new RegExp(`^${name}\\d+$`);
    return [...this.#fields].filter(([field]) => ofName.test(field)).map(([, text]) => text);
  }
}

/** How long a server may take to answer the first question. */
const ANSWER_MS = 5_000;

/** The servers that hold keys, and which of them do not answer, with why. @throws ServerError */
export async function serversOf({
  client,
}: Connection): Promise<{ servers: Server[]; away: { name: string; why: string }[] }> {
  const clients: Redis[] = client instanceof Cluster ? client.nodes('master') : [client as Redis];
  const servers: Server[] = [];
  const away: { name: string; why: string }[] = [];
  await Promise.all(
    clients.map(async (one) => {
      const { path, host, port, sentinels, name: group } = one.options;
      let name = path ?? (sentinels ? `master ${group}` : `${host}:${port}`);
      try {
        const info = new Info(await inTime(one.info()));
        // Which server that is, Sentinel says, and the socket knows.
        const { remoteAddress, remotePort } = one.stream as Socket;
        if (sentinels && remoteAddress) name = `${remoteAddress}:${remotePort}`;
        servers.push({ name, client: one, info });
      } catch (thrown) {
        const known = redisError(thrown, 'ask');
        if (!(known instanceof ConnectionError)) throw known;
        away.push({ name, why: known.message });
      }
    }),
  );
  servers.sort((a, b) => (a.name < b.name ? -1 : 1));
  return { servers, away };
}

function inTime<T>(answer: Promise<T>): Promise<T> {
  const message = new ConnectionError(`no answer within ${ANSWER_MS / 1_000} s`);
  return pTimeout(answer, { milliseconds: ANSWER_MS, message });
}

/** The server's clock in ms since 1970, and how exactly it is known. */
export async function timeOf(
  client: Redis,
): Promise<{ at: number; aheadMs: number; byMs: number }> {
  const before = Date.now();
  const [seconds, micros] = await client.time();
  const after = Date.now();
  const at = Number(seconds) * 1_000 + Number(micros) / 1_000;
  return { at, aheadMs: at - (before + after) / 2, byMs: (after - before) / 2 };
}

/** The server that holds the queue's side. */
export async function serverOfQueue(
  connection: Connection,
  servers: readonly Server[],
  keys: QueueKeys,
): Promise<Server> {
  const address = await connection.addressOf(keys.open);
  const found = servers.find(({ name }) => name === address) ?? servers[0];
  if (!found) throw new Error('no server');
  return found;
}
