import { backoff, PieceworkError, pause } from '@piecework/protocol';
import type { Stay } from './stay.js';

/**
 * Reads until it works: what may pass by itself (a broken connection, a failover) is waited for, as
 * long as the caller stays.
 * @throws AbortError · TimeoutError when the stay ends · ServerError when repeating cannot help
 */
export async function persist<T>(stay: Stay, read: () => Promise<T>): Promise<T> {
  const waits = backoff(50, 2_000);
  for (;;) {
    try {
      const found = await stay.race(read());
      stay.hindered = () => undefined;
      return found;
    } catch (error) {
      stay.throwIfOver();
      if (!(error instanceof PieceworkError) || !error.retryable) throw error;
      stay.hindered = () => error;
      await stay.race(pause(waits.next(), stay.signal));
    }
  }
}
