import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { Where } from './open-client.js';
import { nodeUrls, sentinelsOf } from './redis-url.js';

/*
 * A server that receives TLS on its plain port, or plain text on its TLS port, hangs or closes the connection without a
 * useful error. So when a connection fails, we try the same port the other way, with or without TLS.
 */

/** How long we wait for an answer, in ms. */
const ANSWER_MS = 1_500;

interface Place {
  readonly host: string;
  readonly port: number;
  readonly tls: boolean;
}

/** Explains that the first server of `input` needs TLS, or does not speak it, if that is the cause; else undefined. */
export async function wrongWay(input: Where): Promise<string | undefined> {
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

function placeOf(input: Where): Place | undefined {
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

/** Any reply in the Redis protocol counts, even an error such as that a password is needed. */
const speaksPlainly = ({ host, port }: Place): Promise<boolean> =>
  tried((end) => {
    const socket = connect({ host, port }, () => socket.write('PING\r\n'));
    socket.once('data', (data) => end(/^[+-]/.test(data.toString('latin1'))));
    return socket;
  });

/** Any certificate is accepted, because nothing is sent to the server. */
const speaksTls = ({ host, port }: Place): Promise<boolean> =>
  tried((end) => connectTls({ host, port, rejectUnauthorized: false }, () => end(true)));

/** Opens a connection that answers through `end`. Answers false when it closes, fails or takes too long. */
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
