/** One fleet on one cluster: what the simulation is asked. Times in ms. */
export interface Setting {
  readonly masters: number;
  readonly workers: number;
  /** Mean time of a handler; each takes between half and one and a half of it. */
  readonly handlerMs: number;
  /** Slots of a worker. */
  readonly concurrency: number;
  readonly quantumMs: number;
  /** Live requests, all with work left. */
  readonly requests: number;
  /**
   * Whether requests of the same priority wait for slots: then every time slice ends in a change of
   * request. Otherwise the limits of all live requests together just fill the slots.
   */
  readonly contended: boolean;
  /** Network and kernels, there and back. */
  readonly roundTripMs: number;
  readonly seed: number;
  /** What handlers wait for comes at whole multiples of this, as with Node's timers; left out: at any time. */
  readonly timerMs?: number;
  /** Master of each request, and that of the queue; left out: by chance, and the first. */
  readonly placement?: readonly number[];
  readonly queueMaster?: number;
}

export const MASTERS = [1, 3, 10, 30] as const;
export const WORKERS = [10, 100, 1_000, 10_000] as const;
export const HANDLER_MS = [0, 5, 50, 500, 5_000] as const;

/** How busy a master may be, for good: beyond it waiting grows faster than work. */
export const BUSY_AT_MOST = 0.7;

export const USUAL = {
  concurrency: 10,
  quantumMs: 50,
  requests: 1_000,
  contended: false,
  roundTripMs: 0.25,
  seed: 1,
} as const;
