import { Worker, type WorkerOptions } from '@piecework/worker';

/** A real worker that is not started. It makes all calls by its client alone, so that each of them can go wrong. */
export function workerOf(
  {
    redis,
    queue,
    log,
    handler,
  }: Pick<WorkerOptions, 'redis' | 'queue' | 'handler'> & { readonly log: unknown },
  options: Partial<WorkerOptions> = {},
): Worker {
  return new Worker({
    ...{ redis, queue, logger: log as never, concurrency: 2 },
    // The renewal thread calls by a connection of its own, at its own time, and outlives an end without a word.
    maxBlockMs: 0,
    ...(options.handlers ? {} : { handler }),
    ...options,
  });
}

/** Starts a worker as a caller does: another one when a start failed, after `failed` agrees to it. */
export async function startUntilItWorks<Starting extends { start(): Promise<unknown> }>(
  open: () => Starting | Promise<Starting>,
  failed: (error: { readonly retryable?: boolean }) => void | Promise<void> = () => {},
): Promise<Starting> {
  for (;;) {
    const worker = await open();
    try {
      await worker.start();
      return worker;
    } catch (error) {
      await failed(error as { retryable?: boolean });
    }
  }
}
