import { randomInt } from 'node:crypto';
import { createServer, type Server } from 'node:net';

/*
 * Ports below 32768 are not handed out for outgoing connections on Linux, so nobody takes one by
 * chance between our look and the server's bind, or while a server is away. A cluster node also
 * needs port + 10000, which stays below that line as well.
 */
const FIRST = 20_000;
const LAST = 22_767;
const BUS_OFFSET = 10_000;

/** Before libuv 1.46, as in Node 20.3, all abstract names are the same one. */
const canClaim =
  process.platform === 'linux' && !/^1\.([0-3]?\d|4[0-5])\./.test(process.versions.uv ?? '');

/** Ports that this process has, each with what keeps other processes from it. */
const claims = new Map<number, Server | undefined>();

/**
 * A loopback TCP port that is free now, and so is its cluster bus port. The caller must retry. On Linux
 * (Node 20.8 on) no other process is given it as long as this one lives and has not released it: so a server
 * that is away for a moment comes back to it, and its clients meet no stranger there meanwhile.
 */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < 200; tries++) {
    const port = randomInt(FIRST, LAST + 1);
    if (!(await claim(port))) continue;
    if ((await isFree(port)) && (await isFree(port + BUS_OFFSET))) return port;
    releasePort(port);
  }
  throw new Error(`no free port between ${FIRST} and ${LAST}`);
}

/** Others may be given the port again; without effect for one that this process was not given. */
export function releasePort(port: number): void {
  claims.get(port)?.close();
  claims.delete(port);
}

/**
 * By an abstract socket: its names are of the same network namespace as the ports, and the kernel forgets
 * them with the process.
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
    // Exclusive: a worker of node:cluster would share its primary's socket otherwise.
    probe.listen({ port, host: '127.0.0.1', exclusive: true }, () => {
      probe.close(() => resolve(true));
    });
  });
}
