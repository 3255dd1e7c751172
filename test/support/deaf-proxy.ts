import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/**
 * Stands between a worker, or who waits, and its Redis, and can let connections die without a word, as a network
 * does that drops an idle connection: the server goes on serving a client that hears nothing.
 */
export interface DeafProxy {
  readonly url: string;
  /** How many blocking pops, or what else it goes by, have passed. */
  readonly pops: number;
  /** From here on nothing comes back on the connections that have sent one so far. */
  deafen(): void;
  close(): Promise<void>;
}

/** `by`: what the connections send that can go deaf; a blocking pop by default. */
export async function startDeafProxy(redis: string, by = /blmpop/i): Promise<DeafProxy> {
  const { hostname, port } = new URL(redis);
  const sockets = new Set<Socket>();
  const popping = new Set<Socket>();
  const deaf = new Set<Socket>();
  let pops = 0;
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => {});
    }
    client.on('data', (data) => {
      if (by.test(data.toString('latin1'))) {
        pops += 1;
        popping.add(client);
      }
      upstream.write(data);
    });
    upstream.on('data', (data) => {
      if (!deaf.has(client)) client.write(data);
    });
    // The server does not hear either that a deaf client has gone.
    client.on('close', () => {
      if (!deaf.has(client)) upstream.destroy();
    });
    upstream.on('close', () => client.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get pops() {
      return pops;
    },
    deafen: () => {
      for (const socket of popping) deaf.add(socket);
    },
    close: async () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
