import type { Scene } from './given.js';

/**
 * Keeps the request's side as it is now. What is returned loses all writes to it since, as a server does that
 * comes back from a snapshot, or a replica that takes over.
 */
export async function keepRequest({ connection, request }: Scene): Promise<() => Promise<void>> {
  const { id: _, channel: __, ...keys } = request.keys;
  return keepKeys(connection, Object.values(keys));
}

/** The same of any keys. */
export async function keepKeys(
  { client }: Scene['connection'],
  keys: readonly string[],
): Promise<() => Promise<void>> {
  const kept = await Promise.all(keys.map((key) => client.dumpBuffer(key)));
  return async () => {
    for (const [i, key] of keys.entries()) {
      await client.unlink(key);
      const value = kept[i];
      if (value) await client.restore(key, 0, value);
    }
  };
}
