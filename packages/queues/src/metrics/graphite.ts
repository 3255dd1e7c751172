import { connect, type Socket } from 'node:net';
import { backoff } from '@piecework/protocol';
import type { MetersReading, MetricsServer } from './meters-options.js';
import type { MetricsSink } from './metrics-sink.js';

/** At most this many lines wait for the server; the oldest are dropped. */
const LINES_MAX = 1_000;
/** `close` waits this long for lines that are being sent, in ms. */
const CLOSE_MS = 1_000;

/**
 * Carbon's plaintext protocol: `path value unix-seconds\n` over one TCP connection, which is reopened when it breaks.
 * Lines that were written to a broken connection and not delivered are lost.
 */
export class Graphite implements MetricsSink {
  readonly #host: string;
  readonly #port: number;
  readonly #prefix: string;
  readonly #onError: (error: unknown) => void;
  readonly #waits = backoff(250, 30_000);
  #lines: string[] = [];
  #socket: Socket | undefined;
  #again: NodeJS.Timeout | undefined;
  #closing = false;

  constructor(
    {
      host = '127.0.0.1',
      port = 2003,
      prefix,
    }: MetricsServer & {
      readonly prefix: string;
    },
    onError: (error: unknown) => void,
  ) {
    this.#host = host;
    this.#port = port;
    this.#prefix = prefix;
    this.#onError = onError;
    this.#connect();
  }

  send({ at, rates, gauges }: MetersReading): void {
    const seconds = Math.floor(at / 1_000);
    const line = (name: string, value: number) =>
      this.#lines.push(`${this.#prefix}.${name} ${Number(value.toFixed(3))} ${seconds}\n`);
    for (const [kind, { count, perSecond }] of Object.entries(rates)) {
      line(`${kind}.count`, count);
      line(`${kind}.rate`, perSecond);
    }
    for (const [name, value] of Object.entries(gauges ?? {})) line(name, value);
    this.#lines.splice(0, this.#lines.length - LINES_MAX);
    this.#flush();
  }

  async close(): Promise<void> {
    this.#closing = true;
    clearTimeout(this.#again);
    const socket = this.#socket;
    if (!socket) return;
    await new Promise<void>((resolve) => {
      const late = setTimeout(() => socket.destroy(), CLOSE_MS);
      socket.once('close', () => {
        clearTimeout(late);
        resolve();
      });
      // While it still connects: the 'connect' handler flushes, then ends it.
      if (!socket.connecting) socket.end();
    });
  }

  #connect(): void {
    const socket = connect({ host: this.#host, port: this.#port });
    this.#socket = socket;
    // Meters alone do not keep a process alive.
    socket.unref();
    socket.setKeepAlive(true, 30_000);
    socket.on('connect', () => {
      this.#waits.reset();
      this.#flush();
      if (this.#closing) socket.end();
    });
    // The server sends nothing; but without reading, its end of the connection would go unnoticed.
    socket.resume();
    socket.on('error', this.#onError);
    socket.on('close', () => {
      this.#socket = undefined;
      if (this.#closing) return;
      this.#again = setTimeout(() => this.#connect(), this.#waits.next());
      this.#again.unref();
    });
  }

  /** Writes only when the socket's buffer is empty: that buffer has no bound, the lines here have. */
  #flush(): void {
    const socket = this.#socket;
    if (!socket?.writable || socket.connecting || socket.writableLength > 0) return;
    const lines = this.#lines.splice(0);
    if (lines.length > 0) socket.write(lines.join(''), () => this.#flush());
  }
}
