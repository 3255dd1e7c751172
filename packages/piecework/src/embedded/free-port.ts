import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/*
 * Ports below 32768 are not handed out for outgoing connections on Linux, so nobody takes one by
 * chance between our look and the server's bind, or while a server is away. A cluster node also
 * needs port + 10000, which stays below that line as well.
 */
const FIRST = 20_000;
const LAST = 22_767;
const BUS_OFFSET = 10_000;

/** A loopback TCP port that is free now, and so is its cluster bus port. The caller must retry. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < 200; tries++) {
    const port = randomInt(FIRST, LAST + 1);
    if ((await isFree(port)) && (await isFree(port + BUS_OFFSET))) return port;
  }
  throw new Error(`no free port between ${FIRST} and ${LAST}`);
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
