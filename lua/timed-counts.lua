--- Counts the keys of a timed set, and its leases a page at a time.
--
-- KEYS
--   due       zset    key -> server time from which it may be taken
--   leases    hash    key -> 'token at ends.ms after'
--   failures  stream  what was discarded
-- ARGV
--   cursor  string  '0', then what the call before answered, until that is '0'
-- REPLIES
--   {'counts', keys: int, leased: int, failures: int, next: int, cursor: text}
--      leased: of this page · next: the least time from which any may be taken; -1: there is none
-- REPEAT  reads only
-- FLAGS no-writes

--- @include now

local due, leases, failures = KEYS[1], KEYS[2], KEYS[3]
local cursor = ARGV[1]

local at, leased = now(), 0
local page = redis.call('HSCAN', leases, cursor, 'COUNT', 4000)
for i = 2, #page[2], 2 do
  if tonumber(page[2][i]:match('^%S+ %S+ (%d+)')) > at then
    leased = leased + 1
  end
end
local first = tonumber(redis.call('ZRANGE', due, 0, 0, 'WITHSCORES')[2]) or -1
return { 'counts', redis.call('ZCARD', due), leased, redis.call('XLEN', failures), first, page[1] }
