--- A read-only picture of one request.
--
-- KEYS
--   request   any     state of the request
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

--- @include now, digits, compact, state, books

local request, work, due, progress = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local fields = ARGV

local compact = isCompact(request) and readCompact(request)
local all = {}
if #fields > 0 then
  for i, value in ipairs(compact and someOfCompact(compact, fields) or redis.call('HMGET', request, unpack(fields))) do
    if value then
      all[#all + 1] = fields[i]
      all[#all + 1] = value
    end
  end
else
  all = compact and fieldsOfCompact(compact) or redis.call('HGETALL', request)
end
if #all == 0 then
  return { 'gone' }
end
local at = now()
local books = { ready = 0, inFlight = 0, delayed = 0 }
if compact then
  local total, worker, completedAt = compact[TOTAL], compact[WORKER], compact[COMPLETED_AT]
  -- cure: what is compact may be with a worker
  books[worker ~= '' and 'inFlight' or 'ready'] = completedAt == 0 and total or 0
  return { 'ok', at, books.ready, books.inFlight, 0, all, {} }
end
local v = redis.call('HMGET', request, 'generation', 'status')
if v[2] == 'open' or v[2] == 'sealed' or v[2] == 'cancelling' then
  books = readBooks(readState(request, work, v[1]), work, due, at)
end
return {
  'ok', at, books.ready, books.inFlight, books.delayed, all, redis.call('HGETALL', progress),
}
