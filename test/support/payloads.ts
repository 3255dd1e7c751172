import type { Redis } from 'ioredis';

/** The payloads in packed sub-requests (lua/lib/packed): of each its length in bytes, a colon, and itself. */
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

/** The parsed payloads of a request of which nothing is settled, packed or not, in the order of their indexes. */
export async function payloadsIn(
  client: Pick<Redis, 'type' | 'getBuffer' | 'xrange'>,
  key: string,
): Promise<unknown[]> {
  const payloads =
    (await client.type(key)) === 'string'
      ? unpacked((await client.getBuffer(key)) ?? Buffer.alloc(0))
      : (await client.xrange(key, '-', '+')).map(([, [, payload = '']]) => payload);
  return payloads.map((payload) => JSON.parse(payload));
}
