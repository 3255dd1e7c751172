import type { ResolvedRedis } from '@piecework/embedded';
import { PieceworkError } from '@piecework/protocol';
import { existingRedis } from '../flags/redis-url.js';
import { say } from '../terminal/print.js';

/** The Redis of a run: one that is there, or one of its own, which ends with it. */
export type RunRedis = Pick<ResolvedRedis, 'url' | 'origin' | 'lost' | 'close'>;

/** @param url as the user named it; '' and undefined: the run starts one */
export async function redisOf(url: string | undefined): Promise<RunRedis> {
  if (url) {
    const lost = new Promise<never>(() => {});
    return { url: existingRedis(url), origin: 'environment', lost, close: async () => {} };
  }
  // Loaded on demand: most runs are given a Redis.
  const { resolveRedisUrl } = await import('@piecework/embedded');
  return resolveRedisUrl({ onStatus: say });
}

/** What the user reads when the Redis of a run has ended by itself. */
export function endedWithRedis({ code, message }: PieceworkError): PieceworkError {
  const advice = 'begin it anew, or give it a Redis of yours by --redis';
  const why = `the run ended early, as its Redis did, and cannot be continued; ${advice}: `;
  return new PieceworkError(`${why}${message}`, { code });
}
