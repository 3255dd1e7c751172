import type { MetersReading } from './meters-options.js';

/** Sends readings to a server. `send` neither throws nor waits. */
export interface MetricsSink {
  send(reading: MetersReading): void;
  /** Sends what it can within a second, and closes the connection. */
  close(): Promise<void>;
}
