import type { Address } from '../small/small-contender.js';
import type { BulkContenderName } from './bulk-contender.js';

/** The order to the process of one run. */
export interface BulkOrder {
  readonly contender: BulkContenderName;
  readonly redis: Address;
  readonly queue: string;
  /** Units that are added, and payloads in each. */
  readonly units: number;
  readonly unitSize: number;
  /** Units that are added at the same time. */
  readonly callers: number;
  readonly slots: number;
  readonly warmUpUnits: number;
  readonly payloadBytes: number;
}

/** Of adding everything, or of working it off. */
export interface BulkReport {
  readonly elapsedMs: number;
  readonly cpuMicros: number;
}

export type BulkWord = 'add' | 'work';
