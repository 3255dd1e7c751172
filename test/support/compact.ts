import type { Outcome } from '@piecework/protocol';
import type { RequestCommands } from '@piecework/protocol/testing';
import type { Redis } from 'ioredis';
import { LEASE_MS } from './given.js';

/*
 * Compact requests (lua/lib/compact.lua), read by a script that knows nothing of those under test.
 */

/** Answers the state of a request, and its sub-requests and its record where they are in one string with it. */
export const READ_COMPACT = `
if redis.call('TYPE', KEYS[1]).ok ~= 'string' then
  return { redis.call('HGETALL', KEYS[1]), false, {} }
end
local c = cmsgpack.unpack(redis.call('GET', KEYS[1]))
local fields = {}
local function set(field, value)
  fields[#fields + 1], fields[#fields + 2] = field, tostring(value)
end
for position, field in pairs({ 'generation', 'total', 'out', 'outBefore', 'epoch', [7] = 'granted', [11] = 'priority',
  [12] = 'limit', [13] = 'task', [14] = 'attempts', [15] = 'policy', [16] = 'results', [17] = 'retentionMs',
  [19] = 'createdAt', [20] = 'createUntil', [21] = 'owner', [23] = 'largest' }) do
  set(field, type(c[position]) == 'number' and ('%d'):format(c[position]) or c[position])
end
set('sealedBy', c[21])
set('sent:' .. c[21], c[2])
set('failed', c[28])
set('cancelled', 0)
if c[18] ~= '' then set('notify', c[18]) end
if c[22] ~= '' then set('createdBy', c[22]) end
local others = cmsgpack.unpack(c[24])
for i = 1, #others, 2 do
  set(others[i], others[i + 1])
  if others[i] == 'leaseMs' then set('producerUntil', ('%d'):format(c[19] + others[i + 1])) end
end
if c[6] ~= '' then
  set('permits:' .. c[6], c[7])
  set('op:' .. c[6], ('%d'):format(c[8]))
  set('since:' .. c[6], ('%d'):format(c[8]))
  set('lease:' .. c[6], ('%d'):format(c[9]))
  set('term:' .. c[6], ('%d'):format(c[10]))
end
if c[26] == 0 then
  set('status', 'sealed')
  set('succeeded', 0)
else
  set('status', 'complete')
  set('succeeded', c[2] - c[28])
  set('outcome', c[29])
  set('completedAt', ('%d'):format(c[26]))
  set('kept', c[27])
  set('cost', c[25])
end
local packed = {}
if c[26] == 0 then
  for payload in (c[25] .. '\\30'):gmatch('(.-)\\30') do
    packed[#packed + 1] = #payload .. ':' .. payload
  end
end
local only = #c[30] > 0 and { { c[1] .. '-' .. ('%d'):format(c[2]), c[30] } } or {}
return { fields, table.concat(packed), only }`;

/** The fields of the state of a request, whichever form it has; empty: there is no such key. */
export async function stateOf(
  client: Pick<Redis, 'eval'>,
  request: string,
): Promise<Record<string, string>> {
  return fieldsIn(await client.eval(READ_COMPACT, 1, request));
}

/** The fields in what that script answers. */
export function fieldsIn(answer: unknown): Record<string, string> {
  const [flat] = answer as [string[]];
  const fields: Record<string, string> = {};
  for (let i = 0; i < flat.length; i += 2) fields[flat[i] as string] = flat[i + 1] as string;
  return fields;
}

/** Settles all sub-requests of a compact request as its worker does. */
export async function settleAll(
  { request, generation }: { readonly request: RequestCommands; readonly generation: number },
  { worker = 'worker', grantNo = '1', value = '1', items = 3, op = 2, cost = '100' } = {},
) {
  const outcomes = Array.from({ length: items }, (_, index) => ({
    ...{ entry: `${generation}-${index}`, kind: 's', value, cost },
  })) as Outcome[];
  const numbers = { op, grantNo, leaseMs: LEASE_MS, keep: 0, running: 0, read: 0 };
  return (await request.settle(generation, worker, numbers, outcomes)).settled;
}

/** Makes the usual form of a request that may be compact, as each call does that is not for compact ones. */
export async function expand(request: Pick<RequestCommands, 'seal'>): Promise<void> {
  await request.seal(0, '', 0);
}
