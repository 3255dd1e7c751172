import type { ServerOrigin } from './server-program.js';
import { startRedis } from './start-redis.js';

export interface ResolvedRedis extends AsyncDisposable {
  url: string;
  /** `environment`: from REDIS_URL; else the origin of the embedded server. */
  origin: 'environment' | ServerOrigin;
  /** Ends the embedded server. Does nothing to a server from REDIS_URL. May be called again at any time. */
  close(): Promise<void>;
}

/**
 * The Redis of a program that was given no URL: REDIS_URL if it is set and not empty, else an embedded one.
 * @throws {EmbeddedRedisError} when one is needed and none can be started
 */
export async function resolveRedisUrl(
  options: { onStatus?: ((text: string) => void) | undefined } = {},
): Promise<ResolvedRedis> {
  const url = process.env['REDIS_URL'];
  if (url) {
    const close = async () => {};
    return { url, origin: 'environment', close, [Symbol.asyncDispose]: close };
  }
  const redis = await startRedis({ onStatus: options.onStatus });
  const { origin, close } = redis;
  return { url: redis.url, origin, close, [Symbol.asyncDispose]: close };
}
