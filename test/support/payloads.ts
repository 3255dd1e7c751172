import type { RequestKeys } from '@piecework/protocol';
import type { Redis } from 'ioredis';
import { READ_COMPACT } from './compact.js';

/** The payloads in the second answer of READ_COMPACT: of each its length in bytes, a colon, and itself. */
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

/** The parsed payloads of a request of which nothing is settled, in any form, in the order of their indexes. */
export async function payloadsIn(
  client: Pick<Redis, 'xrange' | 'callBuffer'>,
  { request, work }: Pick<RequestKeys, 'request' | 'work'>,
): Promise<unknown[]> {
  const [, items] = (await client.callBuffer('eval', READ_COMPACT, 1, request)) as [
    unknown,
    Buffer | null,
  ];
  const payloads = items
    ? unpacked(items)
    : (await client.xrange(work, '-', '+')).map(([, [, payload = '']]) => payload);
  return payloads.map((payload) => JSON.parse(payload));
}
