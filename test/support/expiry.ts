import type { Redis } from 'ioredis';

/*
 * A server with a `volatile-` policy may delete any key that has an expiry. So no key of unfinished work may have one.
 * One script reads all keys at one moment.
 */

const FIND = `
local function hasEnded(request)
  local form = redis.call('TYPE', request).ok
  if form == 'string' then
    return cmsgpack.unpack(redis.call('GET', request))[26] > 0
  end
  local status = form == 'hash' and redis.call('HGET', request, 'status') or 'complete'
  return status == 'complete' or status == 'void' or status == 'dropped'
end

local notes = {
  workers = true, ['worker-info'] = true, series = true, history = true, spent = true, errors = true,
}
local found = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  if redis.call('PTTL', key) >= 0 then
    local tag, name = key:match('{(.-)}:?([^:]*)')
    local mayExpire
    if key:sub(1, 1) ~= '{' and name == '' then
      mayExpire = hasEnded('request:{' .. tag .. '}')
    elseif name == 'counters' then
      mayExpire = redis.call('EXISTS', '{' .. tag .. '}:open') == 0
    else
      mayExpire = notes[name] or name == 'dedupe' or name == 'runner' or name == 'caller'
    end
    if not mayExpire then
      found[#found + 1] = key
    end
  end
end
return found`;

/** Keys of unfinished work that would expire. */
export const expiringWork = async (server: Redis): Promise<string[]> =>
  (await server.eval(FIND, 0)) as string[];
