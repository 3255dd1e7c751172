import {
  type DelayedTasks,
  LeaseLostError,
  LostError,
  type RetryItem,
  type RetryQueue,
  type TakeOptions,
  type TaskOptions,
} from 'piecework';

/* What is alike has names of its own: a lost lease and a lost request, what is taken and what is put off. */
export async function handle(task: RetryItem<string>, queue: RetryQueue, later: DelayedTasks) {
  const { reason } = task.signal as { reason: unknown };
  if (reason instanceof LeaseLostError) reason.key.toUpperCase();
  if (reason instanceof LostError) reason.requestId.toUpperCase();
  const take: TakeOptions = { demand: 5, leaseMs: 1_000 };
  for await (const one of queue.items(take)) await one.done();
  const put: TaskOptions = { delayMs: 5 };
  await later.executeLater('post', 'mail', ['a'], put);
}
