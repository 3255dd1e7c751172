--- A read-only picture of one request.
--
-- KEYS
--   request   hash    state of the request
--   work      stream  its sub-requests
--   due       zset    delayed and returned sub-requests
--   progress  hash    index -> what its handler last reported
-- ARGV
-- REPLIES
--   {'ok', now, ready, inFlight, delayed, state, progress}  state and progress: field, value, …
--   {'gone'}  no such request
-- REPEAT  reads only
-- FLAGS no-writes

--- @include now, state, books

local request, work, due, progress = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

local all = redis.call('HGETALL', request)
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
