--- Reads how a queue worked lately.
--
-- KEYS
--   series   list  how the queue worked in the last hour
--   workers  zset  boot id -> time of its last sign of life
-- ARGV
--   count  int  how many intervals at most
-- REPLIES
--   {'series', now: int, workers: int, intervals: list}
--      workers: how many are registered · intervals: as lib/series has them, the latest first
-- REPEAT  reads only
-- FLAGS no-writes

--- @include now

local series, workers = KEYS[1], KEYS[2]
local count = tonumber(ARGV[1])

return { 'series', now(), redis.call('ZCARD', workers), redis.call('LRANGE', series, 0, count - 1) }
