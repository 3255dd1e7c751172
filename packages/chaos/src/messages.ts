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
}

/** What the desk asks for; whoever takes over from a killed process is asked again. */
export type Task =
  | { readonly task: 'produce'; readonly plan: Plan }
  | { readonly task: 'drop'; readonly plan: Plan }
  | { readonly task: 'await'; readonly plan: Plan };

/** What processes tell the desk. */
export type Report =
  | { readonly report: 'ready'; readonly boot?: string }
  /** It exists, and waiters may come. */
  | { readonly report: 'opened'; readonly id: string }
  | { readonly report: 'sealed'; readonly id: string }
  | { readonly report: 'read'; readonly id: string }
  | { readonly report: 'dropped'; readonly id: string }
  /** It cannot be finished: Redis does not know it any more, or somebody else ended it. */
  | { readonly report: 'gave up'; readonly id: string; readonly code: string };
