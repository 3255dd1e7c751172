--- Counts what a timed set holds.
--
-- KEYS
--   due       zset    key -> server time from which it may be taken
--   leases    hash    key -> 'token at ends.ms after'
--   failures  stream  what was discarded
-- REPLIES
--   {'counts', waiting, leased, failures, next}  next: the least time from which any may be taken; -1: none is there
-- REPEAT  reads only
-- FLAGS no-writes

--- @include now

local due, leases, failures = KEYS[1], KEYS[2], KEYS[3]

local at, leased = now(), 0
for _, lease in ipairs(redis.call('HVALS', leases)) do
  if tonumber(lease:match('^%S+ %S+ (%d+)')) > at then
    leased = leased + 1
  end
end
local first = tonumber(redis.call('ZRANGE', due, 0, 0, 'WITHSCORES')[2]) or -1
return { 'counts', redis.call('ZCARD', due) - leased, leased, redis.call('XLEN', failures), first }
