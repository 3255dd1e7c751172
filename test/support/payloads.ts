import type { Redis } from 'ioredis';

/**
 * The payloads of a request that nobody has settled anything of, in the order of their indexes, and whether they are still
 * packed into a string (lua/lib/packed).
 */
export async function workOf(
  client: Pick<Redis, 'type' | 'getBuffer' | 'xrange'>,
  key: string,
): Promise<{ readonly payloads: string[]; readonly packed: boolean }> {
  if ((await client.type(key)) !== 'string') {
    const rows = await client.xrange(key, '-', '+');
    return { payloads: rows.map(([, [, payload = '']]) => payload), packed: false };
  }
  return { payloads: unpacked((await client.getBuffer(key)) ?? Buffer.alloc(0)), packed: true };
}

/** The payloads in a packed text: of each its length in bytes, a colon, and itself. */
export function unpacked(text: Buffer): string[] {
  const payloads: string[] = [];
  for (let from = 0; from < text.length; ) {
    const colon = text.indexOf(':', from);
    const to = colon + 1 + Number(text.toString('utf8', from, colon));
    payloads.push(text.toString('utf8', colon + 1, to));
    from = to;
  }
  return payloads;
}

/** The same, parsed. */
export async function payloadsIn(
  client: Parameters<typeof workOf>[0],
  key: string,
): Promise<unknown[]> {
  return (await workOf(client, key)).payloads.map((payload) => JSON.parse(payload));
}
