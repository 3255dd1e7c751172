import type { Socket } from 'node:net';
import {
  type Connection,
  ConnectionError,
  isCluster,
  type QueueKeys,
  type Redis,
  redisError,
} from '@piecework/protocol';
import pTimeout from 'p-timeout';

/** A server that has keys: the only one, or a master of the cluster. */
export interface Server {
  /** 'host:port' or its socket. */
  readonly name: string;
  readonly client: Redis;
  readonly info: Info;
}

/** The answer of INFO. */
export class Info {
  readonly #fields: ReadonlyMap<string, string>;

  constructor(text: string) {
    const lines = text.split(/\r?\n/).filter((line) => /^\w+:/.test(line));
    this.#fields = new Map(
      lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]),
    );
  }

  /** '' when the answer lacks the field. */
  text(field: string): string {
    return this.#fields.get(field) ?? '';
  }

  /** 0 when the answer lacks the field. */
  number(field: string): number {
    return Number(this.text(field)) || 0;
  }

  /** The fields of this name with a number after it, as slave0, slave1. */
  numbered(name: string): string[] {
    const ofName = new RegExp(`^${name}\\d+$`);
    return [...this.#fields].filter(([field]) => ofName.test(field)).map(([, text]) => text);
  }
}

/** How long a server may take to answer the first command, in ms. */
const ANSWER_MS = 5_000;

/** The servers that have keys; `away`: those that do not answer, and why. @throws ServerError */
export async function serversOf({
  client,
}: Connection): Promise<{ servers: Server[]; away: { name: string; why: string }[] }> {
  const clients: Redis[] = isCluster(client) ? client.nodes('master') : [client as Redis];
  const servers: Server[] = [];
  const away: { name: string; why: string }[] = [];
  await Promise.all(
    clients.map(async (one) => {
      const { path, host, port, sentinels, name: group } = one.options;
      let name = path ?? (sentinels ? `master ${group}` : `${host}:${port}`);
      try {
        const info = new Info(await inTime(one.info()));
        // Sentinel chose the server; the socket knows which one it is.
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

/** The server's clock in ms since 1970, how far it is ahead of this process's, and the error of that, in ms. */
export async function timeOf(
  client: Redis,
): Promise<{ at: number; aheadMs: number; byMs: number }> {
  const before = Date.now();
  const [seconds, micros] = await client.time();
  const after = Date.now();
  const at = Number(seconds) * 1_000 + Number(micros) / 1_000;
  return { at, aheadMs: at - (before + after) / 2, byMs: (after - before) / 2 };
}

/** The server that has the queue's side. */
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
