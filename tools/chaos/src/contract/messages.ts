import type { Plan } from './plan.js';

/** The argument with which a process of the attack is started. */
export interface RoleArgument {
  readonly name: string;
  /** Folder of the journals. */
  readonly journals: string;
  /** Where its proxy listens. */
  readonly redis: string;
  readonly queue: string;
  readonly seed: number;
  readonly leaseMs: number;
  readonly concurrency: number;
  /** Whether notices can reach it. */
  readonly notices: boolean;
  /** How many shards the queue has. */
  readonly shards: number;
  /** Whether the leases of producers are so short that outages may outlast them. */
  readonly shortLeases: boolean;
}

/** A request of the desk to a process; the successor of a killed process gets it again. */
export type Task =
  | { readonly task: 'produce'; readonly plan: Plan }
  | { readonly task: 'drop'; readonly plan: Plan }
  /** `after`: the generation whose completion it awaits, or a later one; 0: any. */
  | { readonly task: 'await'; readonly plan: Plan; readonly after: number }
  /** Step number `step` of the plan. */
  | { readonly task: 'control'; readonly plan: Plan; readonly step: number }
  /** Put no more keys into the other queues; only take those that are there. */
  | { readonly task: 'put no more' };

/**
 * A report of a process to the desk. `sinceNs`: when the acknowledged call was sent; if the server was replaced since,
 * the write may be lost.
 */
export type Report =
  | { readonly report: 'ready'; readonly boot?: string }
  /** It exists, and waiters may come. */
  | { readonly report: 'opened'; readonly id: string }
  | { readonly report: 'sealed'; readonly id: string; readonly sinceNs: string }
  | { readonly report: 'read'; readonly id: string }
  | { readonly report: 'dropped'; readonly id: string; readonly sinceNs: string }
  /** The step is done, or came too late. `generation`: after a redrive, the new one. */
  | {
      readonly report: 'controlled';
      readonly id: string;
      readonly step: number;
      readonly generation: number;
      readonly sinceNs: string;
    }
  /** It cannot be finished: Redis does not know it any more, or another process ended it. */
  | { readonly report: 'gave up'; readonly id: string; readonly code: string };
