import type { ServerOrigin } from './server-program.js';
import { startRedis } from './start-redis.js';

export interface ResolvedRedis extends AsyncDisposable {
  /** Of an embedded server, its `ownUrl`: for programs of this machine that are to end with the server. */
  url: string;
  /** `environment`: from REDIS_URL; else the origin of the embedded server. */
  origin: 'environment' | ServerOrigin;
  /**
   * Rejects (`REDIS_ENDED`) when the embedded server has ended and was not closed: all that was in it is lost. If the
   * program does not handle that, Node ends it with this error.
   */
  lost: Promise<never>;
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
    const lost = new Promise<never>(() => {});
    return { url, origin: 'environment', lost, close, [Symbol.asyncDispose]: close };
  }
  const redis = await startRedis({ onStatus: options.onStatus });
  const { ownUrl, origin, close } = redis;
  // A promise of its own, as that of `startRedis` may be left unhandled.
  const lost = redis.lost.finally();
  return { url: ownUrl, origin, lost, close, [Symbol.asyncDispose]: close };
}
