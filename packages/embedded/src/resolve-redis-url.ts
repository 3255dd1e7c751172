import type { ServerOrigin } from './server-program.js';
import { startRedis } from './start-redis.js';

export interface ResolvedRedis extends AsyncDisposable {
  url: string;
  /** `environment`: REDIS_URL was set; else where the embedded server came from. */
  origin: 'environment' | ServerOrigin;
  /** Ends what was started here; a server named by REDIS_URL is left alone. */
  stop(): Promise<void>;
}

/**
 * The Redis to use when none is named: REDIS_URL if it is set and not empty, else an embedded one.
 * @throws {EmbeddedRedisError} when one is needed and none can be started
 */
export async function resolveRedisUrl(
  options: { onStatus?: ((text: string) => void) | undefined } = {},
): Promise<ResolvedRedis> {
  const url = process.env['REDIS_URL'];
  if (url) {
    const stop = async () => {};
    return { url, origin: 'environment', stop, [Symbol.asyncDispose]: stop };
  }
  const redis = await startRedis({ onStatus: options.onStatus });
  const { origin, stop } = redis;
  return { url: redis.url, origin, stop, [Symbol.asyncDispose]: stop };
}
