--- A read-only picture of one request.
--
-- KEYS
--   request   hash    state of the request
--   work      stream  its sub-requests
--   due       zset    delayed and returned sub-requests
--   progress  hash    index -> what its handler last reported
-- ARGV
--   fields...  string  of the state that are wanted; none: all
-- REPLIES
--   {'ok', now: int, ready: int, inFlight: int, delayed: int, state: pairs, progress: pairs}
--   {'gone'}  no such request
-- REPEAT  reads only
-- FLAGS no-writes

--- @include now, state, packed, books

local request, work, due, progress = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local fields = ARGV

local all = #fields == 0 and redis.call('HGETALL', request) or {}
for i, value in ipairs(#fields > 0 and redis.call('HMGET', request, unpack(fields)) or {}) do
  if value then
    all[#all + 1] = fields[i]
    all[#all + 1] = value
  end
end
if #all == 0 then
  return { 'gone' }
end
local at = now()
local books = { ready = 0, inFlight = 0, delayed = 0 }
local v = redis.call('HMGET', request, 'generation', 'status')
if v[2] == 'open' or v[2] == 'sealed' or v[2] == 'cancelling' then
  books = readBooks(readState(request, v[1]), work, due, at)
end
return {
  'ok', at, books.ready, books.inFlight, books.delayed, all, redis.call('HGETALL', progress),
}
