import type { Order } from './delayed-order.mjs';

export interface Size {
  /** Tasks that are all in, and those due all moved, before the worker starts. */
  readonly before: number;
  /** Tasks that are put in while it runs. */
  readonly live: number;
}

export interface Run extends Order {
  readonly recorded: readonly { readonly n: number; readonly id: string }[];
  /** How many were moved into lanes before the worker started. */
  readonly moved: number;
  /** How many had run when the last one was put in. */
  readonly ranMeanwhile: number;
}

export function runDelayedTasks(
  size: Size & { readonly delayMs: number; readonly say?: (text: string) => void },
): Promise<Run>;

/** What is wrong, in words; nothing when all is as it should be. */
export function wrongIn(run: Run, size: Size): string[];

export function runTwoQueues(options: {
  readonly count: number;
  readonly concurrency: number;
  /** There is something in the later queue throughout, so that no pop waits. */
  readonly busy?: boolean;
}): Promise<{ readonly ran: number; readonly orders: Map<string, Order> }>;
