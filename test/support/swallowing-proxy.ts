import { connect, createServer, type Server, type Socket } from 'node:net';

/**
 * A TCP proxy on loopback that can turn into a black hole: connections stay up and new ones are
 * accepted, but nothing comes through any more, in either direction. That is what a host that died, or
 * a network that swallows, looks like to a client. What was swallowed is not sent later.
 */
export class SwallowingProxy implements AsyncDisposable {
  readonly #server: Server;
  readonly #pairs = new Set<[Socket, Socket]>();
  #swallowing = false;
  #accepted = 0;

  private constructor(toPort: number) {
    this.#server = createServer((near) => {
      this.#accepted += 1;
      const far = connect(toPort, '127.0.0.1');
      const pair: [Socket, Socket] = [near, far];
      this.#pairs.add(pair);
      for (const [from, to] of [pair, [far, near] as const]) {
        from.on('data', (data) => {
          if (!this.#swallowing) to.write(data);
        });
        from.on('error', () => {});
        from.on('close', () => {
          to.destroy();
          this.#pairs.delete(pair);
        });
      }
    });
  }

  static async open(toPort: number): Promise<SwallowingProxy> {
    const proxy = new SwallowingProxy(toPort);
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as { port: number }).port;
  }

  /** Connections accepted so far. */
  get accepted(): number {
    return this.#accepted;
  }

  swallow(): void {
    this.#swallowing = true;
  }

  /** Lets through what comes on connections made from here on; the old ones stay dead. */
  lift(): void {
    for (const pair of this.#pairs) for (const socket of pair) socket.pause();
    this.#swallowing = false;
  }

  /** Breaks every connection, so that whoever hung on one notices. */
  cut(): void {
    for (const pair of this.#pairs) for (const socket of pair) socket.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
