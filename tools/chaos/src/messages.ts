import type { Plan } from './plan.js';

/** What a process of the attack is told when it starts. */
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
  /** Whether leases of those who add are short enough for an outage to outlast them. */
  readonly shortLeases: boolean;
}

/** What the desk asks for; whoever takes over from a killed process is asked again. */
export type Task =
  | { readonly task: 'produce'; readonly plan: Plan }
  | { readonly task: 'drop'; readonly plan: Plan }
  /** `after`: the life that it is to see the end of, or a later one; 0: any. */
  | { readonly task: 'await'; readonly plan: Plan; readonly after: number }
  /** Step number `step` of the plan. */
  | { readonly task: 'control'; readonly plan: Plan; readonly step: number }
  /** Put no more keys into the other queues: what is there is taken. */
  | { readonly task: 'put no more' };

/**
 * What processes tell the desk. `sinceNs`: when the call was sent that was acknowledged; of a server that was
 * replaced since, it may not be true any more.
 */
export type Report =
  | { readonly report: 'ready'; readonly boot?: string }
  /** It exists, and waiters may come. */
  | { readonly report: 'opened'; readonly id: string }
  | { readonly report: 'sealed'; readonly id: string; readonly sinceNs: string }
  | { readonly report: 'read'; readonly id: string }
  | { readonly report: 'dropped'; readonly id: string; readonly sinceNs: string }
  /** The step is done, or came too late; of a redrive, the life it is in now. */
  | {
      readonly report: 'controlled';
      readonly id: string;
      readonly step: number;
      readonly generation: number;
      readonly sinceNs: string;
    }
  /** It cannot be finished: Redis does not know it any more, or somebody else ended it. */
  | { readonly report: 'gave up'; readonly id: string; readonly code: string };
