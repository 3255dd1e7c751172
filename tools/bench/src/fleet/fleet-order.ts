import type { Address, FleetContenderName } from './fleet-contender.js';

/** The order to a process that contains workers of a fleet. */
export interface FleetOrder {
  readonly contender: FleetContenderName;
  readonly redis: Address;
  readonly queue: string;
  /** One number for each worker of the process: by how much its handlers are slower than nominal. */
  readonly slowness: readonly number[];
  readonly slots: number;
  readonly handlerMs: number;
  /** Equal requests that share the work. */
  readonly requests: number;
  readonly payloadBytes: number;
  /** Sub-requests that the process runs first, in the same set-up, on a queue of its own. */
  readonly warmUpCount: number;
  /** Records when each handler ended. */
  readonly notes: boolean;
}

export interface FleetReport {
  readonly handled: number;
  /** For each worker, by the clock that all processes share; null if it ran nothing. */
  readonly firstStartsMs: readonly (number | null)[];
  readonly lastEndMs: number;
  /** Sum of the measured times of all handlers. */
  readonly handlersMs: number;
  /** From the first handler's start on. */
  readonly cpuMicros: number;
  /** Number of the sub-request and end of its handler, if they are recorded. */
  readonly ends: readonly (readonly [n: number, endMs: number])[];
}

export type ToFleet = 'start' | 'report' | 'close';
export type FromFleet =
  | { readonly kind: 'ready' }
  | { readonly kind: 'first' }
  | { readonly kind: 'report'; readonly report: FleetReport };
