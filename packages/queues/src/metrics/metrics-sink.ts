import type { MetersReading } from './meters-options.js';

/** What takes readings away. Never throws, never waits. */
export interface MetricsSink {
  send(reading: MetersReading): void;
  /** Sends what it can within a moment. */
  close(): Promise<void>;
}
