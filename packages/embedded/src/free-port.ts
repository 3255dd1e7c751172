import { randomInt } from 'node:crypto';
import { createServer, type Server } from 'node:net';
import { EmbeddedRedisError } from './embedded-redis-error.js';

/*
 * Linux does not use ports below 32768 for outgoing connections, so no process gets one by chance between our check and
 * the bind of the server, or while a server is restarted. A cluster node also needs port + 10000, which has to be below
 * 32768 as well.
 */
const FIRST = 20_000;
const LAST = 22_767;
const BUS_OFFSET = 10_000;
const TRIES = 200;

/** Before libuv 1.46 (Node 20.3), all abstract socket names were the same. */
const canClaim =
  process.platform === 'linux' && !/^1\.([0-3]?\d|4[0-5])\./.test(process.versions.uv ?? '');

/** The ports of this process, each with the socket that keeps other processes from it. */
const claims = new Map<number, Server | undefined>();

/**
 * A loopback TCP port that is free now together with its cluster bus port (port + 10000). Another program may still take
 * it first: then the caller has to try again. On Linux (Node 20.8 and newer), no other process gets the port from this
 * function until this process ends or releases it. So a server can be restarted on its port, and its clients never
 * reach the server of somebody else there. Why this is no library: docs/decisions/0043.
 * @throws {EmbeddedRedisError} `REDIS_NOT_STARTED` when none is found
 */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < TRIES; tries++) {
    const port = randomInt(FIRST, LAST + 1);
    if (!(await claim(port))) continue;
    if ((await isFree(port)) && (await isFree(port + BUS_OFFSET))) return port;
    releasePort(port);
  }
  throw new EmbeddedRedisError(
    'REDIS_NOT_STARTED',
    `no free port found in ${TRIES} tries between ${FIRST} and ${LAST} on 127.0.0.1; choose a port, or end servers that nobody needs`,
  );
}

/** Lets other processes get the port. Does nothing for a port that is not from `freePort`. */
export function releasePort(port: number): void {
  claims.get(port)?.close();
  claims.delete(port);
}

/**
 * Claims a port by an abstract socket: its name belongs to the same network namespace as the port, and the kernel
 * removes it when the process ends.
 */
function claim(port: number): Promise<boolean> {
  if (claims.has(port)) return Promise.resolve(false);
  claims.set(port, undefined);
  if (!canClaim) return Promise.resolve(true);
  return new Promise((resolve) => {
    const holder = createServer((socket) => socket.destroy());
    holder.on('error', ({ code }: NodeJS.ErrnoException) => {
      const taken = code === 'EADDRINUSE';
      if (taken) claims.delete(port);
      resolve(!taken);
    });
    holder.listen({ path: `\0piecework-port-${port}`, exclusive: true }, () => {
      claims.set(port, holder);
      resolve(true);
    });
    holder.unref();
  });
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    // Exclusive: a worker of node:cluster would otherwise share the socket of its primary.
    probe.listen({ port, host: '127.0.0.1', exclusive: true }, () => {
      probe.close(() => resolve(true));
    });
  });
}
