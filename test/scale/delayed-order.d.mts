export interface Popped {
  readonly id: string;
  readonly priority: number;
  /** When it was due, in ms of the server's clock; 0: it was not delayed. */
  readonly due: number;
}

export interface Order {
  readonly pops: readonly Popped[];
  readonly breaches: readonly string[];
  /** The greatest number of pops from later queues while one of its tasks was in its list. */
  readonly overtaken: number;
}

export function judgeOrder(folder: string, queues: readonly string[]): Promise<Map<string, Order>>;

export interface TurnsOrder {
  readonly pops: readonly QueueOrder['pops'][number][];
  readonly breaches: readonly string[];
  readonly overtaken: number;
}

export function judgeTurns(folder: string, shards: readonly string[]): Promise<TurnsOrder>;
