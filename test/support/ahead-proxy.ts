import { connect, createServer, type Server, type Socket } from 'node:net';

/**
 * A TCP proxy on loopback in front of a Redis whose clock it makes seem ahead: it adds to the seconds
 * in the replies to TIME. That is what a server whose clock is wrong looks like to a client.
 */
export class AheadProxy implements AsyncDisposable {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(toPort: number, aheadSeconds: number) {
    this.#server = createServer((near) => {
      const far = connect(toPort, '127.0.0.1');
      near.pipe(far);
      far.on('data', (data) => {
        // A reply of its own: two texts, seconds and microseconds.
        const text = data
          .toString('latin1')
          .replace(/^\*2\r\n\$10\r\n(\d{10})\r\n/, (_, seconds: string) => {
            return `*2\r\n$10\r\n${Number(seconds) + aheadSeconds}\r\n`;
          });
        near.write(Buffer.from(text, 'latin1'));
      });
      for (const [one, other] of [
        [near, far],
        [far, near],
      ] as const) {
        this.#sockets.add(one);
        one.on('error', () => {});
        one.on('close', () => {
          this.#sockets.delete(one);
          other.destroy();
        });
      }
    });
  }

  static async open(toPort: number, aheadSeconds: number): Promise<AheadProxy> {
    const proxy = new AheadProxy(toPort, aheadSeconds);
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as { port: number }).port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
