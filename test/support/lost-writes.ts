import type { Scene } from './given.js';

/**
 * Keeps the request's side as it is now. What is returned loses all writes to it since, as a server does that
 * comes back from a snapshot, or a replica that takes over.
 */
export async function keepRequest({ connection, request }: Scene): Promise<() => Promise<void>> {
  const { id: _, channel: __, ...keys } = request.keys;
  return keepKeys(connection, Object.values(keys));
}

/** The hash tag of a key. */
const slotOf = (key: string) => /\{(.*?)\}/.exec(key)?.[1];

/** The same of any keys: of each slot at once, so that no reader sees some of a request's keys put back and others not. */
export async function keepKeys(
  { client }: Scene['connection'],
  keys: readonly string[],
): Promise<() => Promise<void>> {
  const kept = await Promise.all(
    keys.map(async (key) => ({ key, slot: slotOf(key), value: await client.dumpBuffer(key) })),
  );
  return async () => {
    for (const slot of new Set(kept.map((one) => one.slot))) {
      const atOnce = client.multi();
      for (const { key, value } of kept.filter((one) => one.slot === slot)) {
        if (value) atOnce.restore(key, 0, value, 'REPLACE');
        else atOnce.unlink(key);
      }
      for (const [error] of (await atOnce.exec()) ?? []) if (error) throw error;
    }
  };
}
