import { connect, type Socket } from 'node:net';
import { backoff } from '@piecework/protocol';
import type { MetersReading, MetricsServer } from './meters-options.js';
import type { MetricsSink } from './metrics-sink.js';

/** Most lines that wait for the server; then the oldest go. */
const LINES_MAX = 1_000;
/** How long a close waits for lines on their way, in ms. */
const CLOSE_MS = 1_000;

/**
 * Carbon's plaintext protocol: `path value unix-seconds\n` over one TCP connection, which is made again when
 * it broke. What was written and not delivered then is lost: at most what was on its way.
 */
export class Graphite implements MetricsSink {
  readonly #host: string;
  readonly #port: number;
  readonly #prefix: string;
  readonly #tell: (error: unknown) => void;
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
    tell: (error: unknown) => void,
  ) {
    this.#host = host;
    this.#port = port;
    this.#prefix = prefix;
    this.#tell = tell;
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
      // One that still connects has its turn: 'connect' comes first, and flushes.
      if (!socket.connecting) socket.end();
    });
  }

  #connect(): void {
    const socket = connect({ host: this.#host, port: this.#port });
    this.#socket = socket;
    // Metering alone keeps no process alive.
    socket.unref();
    socket.setKeepAlive(true, 30_000);
    socket.on('connect', () => {
      this.#waits.reset();
      this.#flush();
      if (this.#closing) socket.end();
    });
    // It says nothing; but without reading, its end would go unseen.
    socket.resume();
    socket.on('error', this.#tell);
    socket.on('close', () => {
      this.#socket = undefined;
      if (this.#closing) return;
      this.#again = setTimeout(() => this.#connect(), this.#waits.next());
      this.#again.unref();
    });
  }

  /** Lines wait here and not in the socket, which has no bound: no more is written than it takes. */
  #flush(): void {
    const socket = this.#socket;
    if (!socket?.writable || socket.connecting || socket.writableLength > 0) return;
    const lines = this.#lines.splice(0);
    if (lines.length > 0) socket.write(lines.join(''), () => this.#flush());
  }
}
