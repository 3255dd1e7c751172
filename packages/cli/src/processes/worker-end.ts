import type { CrashCause } from '@piecework/protocol/contract';

/** A worker of this machine whose process has ended, and the queues (or shards) that it served. */
export interface EndedWorker {
  readonly worker: string;
  readonly queues: readonly string[];
}

/** The cause of a crash, from the exit code or the signal of the process. */
export function causeOf(exitCode: number | null, signal: string | null): CrashCause {
  if (signal === null) return exitCode === null ? {} : { exitCode };
  // The kernel sends SIGKILL when the machine is out of memory; Node ends by SIGABRT when its heap is full.
  const perhaps = signal === 'SIGKILL' || signal === 'SIGABRT';
  return perhaps ? { signal, outOfMemory: 'perhaps' } : { signal };
}
