--- Strikes a worker out of the registry when it closes.
--
-- KEYS
--   open        hash  id -> generation
--   workers     zset  boot id -> time of its last sign of life
--   workerInfo  hash  boot id -> JSON
--   history     zset  id -> time of its end
--   counters    hash  counts of this queue
--   errors      list  the last errors
--   pushed      hash  priority -> tokens ever pushed to its list
--   parked      hash  id -> 'generation task'
--   lists...    list  all token lists
-- ARGV
--   worker  string  boot id
-- REPLIES
--   {'departed'}  it is not in the registry any more
-- REPEAT  the same reply
-- FLAGS allow-oom

--- @include sweep

local open, workers, workerInfo, history, counters, errors, pushed, parked =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local lists = { unpack(KEYS, 9) }
local worker = ARGV[1]

redis.call('ZREM', workers, worker)
redis.call('HDEL', workerInfo, worker)
sweep(open, workers, history, { pushed, parked, unpack(lists) }, { counters, errors })
return { 'departed' }
