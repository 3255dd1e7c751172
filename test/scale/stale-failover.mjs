// A primary with a replica that is some ms behind, and clients that know neither, only an address: when the
// primary is killed, the replica takes over without what had not come to it, and a new replica follows it.
import { connect, createServer } from 'node:net';
import { startRedis } from '@piecework/embedded';
import { Redis } from 'ioredis';

const LOOPBACK = '127.0.0.1';
/** Holds the time at which it was written, by which a replica tells how far it came. */
const MARK = 'stale-failover:mark';
const SETTINGS = [
  ...['--save', '', '--appendonly', 'no', '--repl-diskless-sync', 'yes'],
  ...['--repl-diskless-sync-delay', '0', '--enable-debug-command', 'local'],
];

/** A way to a server that can be cut and led elsewhere; what goes from the server comes `behindMs` later. */
async function openWay(port, behindMs = () => 0) {
  let target = port;
  const sockets = new Set();
  const join = (socket) => {
    sockets.add(socket);
    socket.setNoDelay(true);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
  };
  const server = createServer((near) => {
    join(near);
    if (target === undefined) return near.destroy();
    const far = connect(target, LOOPBACK);
    join(far);
    near.pipe(far);
    far.on('data', (chunk) => {
      const ms = behindMs();
      if (ms === 0) near.write(chunk);
      else setTimeout(() => near.destroyed || near.write(chunk), ms);
    });
    near.on('close', () => far.destroy());
    far.on('close', () => near.destroy());
  });
  await new Promise((resolve) => server.listen(0, LOOPBACK, resolve));
  return {
    port: server.address().port,
    cut() {
      target = undefined;
      for (const socket of sockets) socket.destroy();
    },
    leadTo(next) {
      target = next;
    },
    async close() {
      this.cut();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** A server that follows the one on `port`, `behindMs()` later. */
async function follow(port, behindMs) {
  const link = await openWay(port, behindMs);
  const server = await startRedis({ password: '', args: SETTINGS });
  const client = new Redis(server.url);
  await client.replicaof(LOOPBACK, link.port);
  await caughtUp(port);
  return { link, server, client };
}

/** A replica whose link is up may still have to be sent for a second what came meanwhile. */
async function caughtUp(port) {
  const client = new Redis(port, LOOPBACK);
  await client.set(MARK, 0);
  while ((await client.wait(1, 1_000)) === 0);
  client.disconnect();
}

/**
 * @returns `url`: where clients find whoever is the primary · `failOver(behindMs)`: has the replica fall behind by
 *   so much, kills the primary, and has the replica take over; answers until when the replica has everything,
 *   and when it took over (performance.now()) · `close`
 */
export async function startStale() {
  let primary = await startRedis({ password: '', args: SETTINGS });
  let behind = 0;
  let replica = await follow(primary.port, () => behind);
  const way = await openWay(primary.port);
  return {
    url: `redis://${LOOPBACK}:${way.port}`,
    async failOver(behindMs) {
      behind = behindMs;
      const marking = new Redis(primary.port, LOOPBACK);
      const from = performance.now();
      const isBehind = async () =>
        performance.now() > from + 2 * behindMs + 20 &&
        Number(await replica.client.get(MARK)) > from;
      while (!(await isBehind())) await marking.set(MARK, performance.now());
      marking.disconnect();
      // What is on its way is lost with the one who sent it.
      replica.link.cut();
      await primary.kill('SIGKILL');
      way.cut();
      await primary.ended;
      await replica.client.replicaof('NO', 'ONE');
      behind = 0;
      const hasUntil = Number(await replica.client.get(MARK));
      await replica.link.close();
      primary = replica.server;
      replica.client.disconnect();
      way.leadTo(primary.port);
      const tookOver = performance.now();
      replica = await follow(primary.port, () => behind);
      return { hasUntil, tookOver };
    },
    async close() {
      await way.close();
      await replica.link.close();
      replica.client.disconnect();
      await Promise.all([replica.server.close(), primary.close()]);
    },
  };
}
