/** What one call costs the server's main thread. */
export interface CallCost {
  /** CPU time of the server, in µs: sockets, parsing, the script, the reply. */
  readonly micros: number;
  /** Of it, by `INFO commandstats`: the commands themselves. */
  readonly insideMicros: number;
  /** How many calls that was measured over. */
  readonly calls: number;
}

/** Calls on the request side; `turn<k>` is a settle of k that reads k. */
export const REQUEST_CALLS = [
  'create',
  'append500',
  'enter',
  'enter10',
  'firstRead',
  'turn1',
  'turn10',
  'turn100',
  'settle1',
  'renew',
  'compare',
  'tend1',
  'tend100',
  'tend1000',
  'results1000',
] as const;
/** Calls on the queue side: all of them on the one master that holds the queue's hash slot. */
export const QUEUE_CALLS = [
  'intent',
  'push',
  'should-yield',
  'exchange',
  'popAtHand',
  'popTimedOut',
  'tick1',
  'tick1000',
  'writeBack',
  'finish',
] as const;

export type CallName = (typeof REQUEST_CALLS)[number] | (typeof QUEUE_CALLS)[number];
export type ServerCosts = Readonly<Record<CallName, CallCost>>;

/** What a worker process spends on one round of settle and read. */
export interface ClientCosts {
  readonly perTurnMicros: number;
  readonly perOutcomeMicros: number;
}

export interface Costs {
  readonly server: ServerCosts;
  readonly client: ClientCosts;
}

/** A settle of `outcomes` that reads `read` (0: none). µs of the master. */
export function settleMicros({ server }: Costs, outcomes: number, read: number): number {
  if (outcomes === 0) return server.firstRead.micros;
  const whole = between(outcomes, [
    [1, server.turn1.micros],
    [10, server.turn10.micros],
    [100, server.turn100.micros],
  ]);
  if (read > 0) return whole;
  return whole * (server.settle1.micros / server.turn1.micros);
}

/** An enter for so many permits, which reads a sub-request for each. */
export function enterMicros({ server }: Costs, permits: number): number {
  return between(permits, [
    [1, server.enter.micros],
    [10, server.enter10.micros],
  ]);
}

/** Putting one sub-request in, and reading its result. µs of the request's master. */
export function fillMicros({ server }: Costs): number {
  return server.append500.micros / 500 + server.results1000.micros / 1_000;
}

/** One tend of a request of which this many workers have permits. */
export function tendMicros({ server }: Costs, holders: number): number {
  return between(holders, [
    [1, server.tend1.micros],
    [100, server.tend100.micros],
    [1_000, server.tend1000.micros],
  ]);
}

export function tickMicros({ server }: Costs, fleet: number): number {
  return between(fleet, [
    [1, server.tick1.micros],
    [1_000, server.tick1000.micros],
  ]);
}

type Point = readonly [x: number, y: number];

/** On the straight lines through the points; beyond the ends, on the first or the last of them. */
export function between(x: number, points: readonly Point[]): number {
  const next = points.findIndex(([known]) => known >= x);
  const right = next < 0 ? points.length - 1 : Math.max(1, next);
  const [x0, y0] = points[right - 1] as Point;
  const [x1, y1] = points[right] as Point;
  return Math.max(0, y0 + ((y1 - y0) * (x - x0)) / (x1 - x0));
}
