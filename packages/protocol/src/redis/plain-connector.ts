import { createConnection, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { RedisOptions } from 'ioredis';
import { AbstractConnector } from './ioredis.js';

/** Connects to one server, as the connector of ioredis does, which ioredis does not export. */
export class PlainConnector extends AbstractConnector {
  readonly #options: RedisOptions;

  constructor(given: unknown) {
    const options = given as RedisOptions;
    super(options.disconnectTimeout ?? 0);
    this.#options = options;
  }

  async connect(): Promise<Socket> {
    this.connecting = true;
    const { path, host, port, family, tls } = this.#options;
    const at = path
      ? { path }
      : { host: host ?? 'localhost', port: port ?? 6379, family: family ?? 0 };
    const stream = tls ? connectTls({ ...at, ...tls }) : createConnection(at);
    this.stream = stream;
    stream.once('error', (error) => {
      this.firstError = error;
    });
    return stream;
  }
}
