import { backoff, PieceworkError, pause } from '@piecework/protocol';
import type { WaitScope } from './wait-scope.js';

/**
 * Repeats a read until it works or the scope ends. Errors that may pass by themselves, such as a broken
 * connection or a failover, are waited out.
 * @throws AbortError · TimeoutError · ClosedError when the scope ends · ServerError when repeating cannot help
 */
export async function persist<T>(scope: WaitScope, read: () => Promise<T>): Promise<T> {
  const waits = backoff(50, 2_000);
  for (;;) {
    try {
      const answer = await scope.race(read());
      scope.hindered = () => undefined;
      return answer;
    } catch (error) {
      scope.throwIfEnded();
      if (!(error instanceof PieceworkError) || !error.retryable) throw error;
      scope.hindered = () => error;
      await scope.race(pause(waits.next(), scope.signal));
    }
  }
}

/** Whether Redis refuses a command to this user: to wait would be in vain, and in silence. */
export const lacksRight = (error: unknown): boolean =>
  error instanceof PieceworkError && error.code === 'NO_RIGHT';
