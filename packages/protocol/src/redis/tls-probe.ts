import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { RedisInput } from './open-client.js';
import { nodeUrls, sentinelsOf } from './redis-url.js';

/*
 * A server says nothing of use to who speaks TLS to its plain port, or plainly to its TLS port: it hangs, or
 * closes the connection. So whoever cannot connect asks it in the other way.
 */

/** How long the server has for its answer, in ms. */
const ANSWER_MS = 1_500;

interface Place {
  readonly host: string;
  readonly port: number;
  readonly tls: boolean;
}

/** Says that the first server of `input` speaks TLS and was not asked so, or the reverse; undefined: it does not. */
export async function wrongWay(input: RedisInput): Promise<string | undefined> {
  const place = placeOf(input);
  if (!place) return undefined;
  const { host, port, tls } = place;
  const at = `${host}:${port}`;
  if (tls)
    return (await speaksPlainly(place))
      ? `${at} does not speak TLS there: name it by redis:// instead of rediss://, or name its TLS port`
      : undefined;
  return (await speaksTls(place))
    ? `${at} speaks TLS there: name it by rediss:// instead of redis://, or name its plain port`
    : undefined;
}

function placeOf(input: RedisInput): Place | undefined {
  if (typeof input === 'string') {
    const [first = ''] = nodeUrls(input);
    const { sentinels, tls } = sentinelsOf(first) ?? {};
    const [sentinel] = sentinels ?? [];
    if (sentinel) return place(sentinel.host, sentinel.port ?? 26_379, tls);
    if (!/^rediss?:/.test(first)) return undefined;
    const { hostname, port, protocol } = new URL(first);
    return place(hostname.replace(/^\[|\]$/g, ''), Number(port || 6379), protocol === 'rediss:');
  }
  if ('nodes' in input && Array.isArray(input.nodes)) {
    const { nodes, options } = input as {
      nodes: { host: string; port: number }[];
      options?: { redisOptions?: { tls?: unknown } };
    };
    const [node] = nodes;
    return node && place(node.host, node.port, options?.redisOptions?.tls);
  }
  const { host, port, path, tls, sentinels } = input as {
    host?: string;
    port?: number;
    path?: string;
    tls?: unknown;
    sentinels?: unknown;
  };
  return path || sentinels ? undefined : place(host, port, tls);
}

const place = (host = '127.0.0.1', port = 6379, tls: unknown): Place => ({
  host: host || '127.0.0.1',
  port,
  tls: Boolean(tls),
});

/** Any reply in the protocol of Redis will do, also that it wants a password. */
const speaksPlainly = ({ host, port }: Place): Promise<boolean> =>
  tried((end) => {
    const socket = connect({ host, port }, () => socket.write('PING\r\n'));
    socket.once('data', (data) => end(/^[+-]/.test(data.toString('latin1'))));
    return socket;
  });

/** Whose certificate it is does not matter: nothing is told to it. */
const speaksTls = ({ host, port }: Place): Promise<boolean> =>
  tried((end) => connectTls({ host, port, rejectUnauthorized: false }, () => end(true)));

/** What a connection comes to, which `end` says; without that, nothing. */
function tried(open: (end: (answer: boolean) => void) => Socket): Promise<boolean> {
  return new Promise((resolve) => {
    const end = (answer: boolean) => {
      socket.destroy();
      resolve(answer);
    };
    const socket = open(end);
    socket.setTimeout(ANSWER_MS, () => end(false));
    socket.once('error', () => end(false));
    socket.once('close', () => end(false));
  });
}
