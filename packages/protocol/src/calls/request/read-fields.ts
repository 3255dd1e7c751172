import type { RequestKeys } from '../../contract/keys.js';
import type { Client } from '../../redis/client.js';
import { requestCalls } from './request-calls.js';

/** The most fields of one call: a function of Lua takes some thousand arguments. */
const FIELDS = 1_000;

/**
 * Fields of the state of a request as they are stored, '' for missing ones, whichever form the state has
 * (lua/lib/compact). One round trip for each thousand.
 */
export async function readFields<Name extends string>(
  client: Client,
  keys: Pick<RequestKeys, 'request'>,
  names: readonly Name[],
): Promise<Record<Name, string>> {
  const values: string[] = [];
  for (let from = 0; from < names.length; from += FIELDS) {
    const fields = names.slice(from, from + FIELDS);
    values.push(...(await requestCalls(client).read({ keys, fields })));
  }
  return Object.fromEntries(names.map((name, i) => [name, values[i] ?? ''])) as Record<
    Name,
    string
  >;
}
