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
--   parkedByTask      zset  'task\0id' of those, all of score 0
--   lists...    list  all token lists, and the lanes that `lanes` names
-- ARGV
--   worker  string  boot id
--   lanes   string  what an earlier call answered, or ''
-- REPLIES
--   {'departed', lanes: text}  it is not in the registry any more
--      lanes: '', or which lanes are left to be cleared away: call again with those
-- REPEAT  the same reply
-- FLAGS allow-oom

--- @include sweep

local open, workers, workerInfo, history, counters, errors, pushed, parked, parkedByTask =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local lists = { unpack(KEYS, 10) }
local worker, lanes = ARGV[1], ARGV[2]

redis.call('ZREM', workers, worker)
redis.call('HDEL', workerInfo, worker)
local perOpen = { parked, parkedByTask, unpack(lists) }
local left = sweep(open, workers, history, pushed, lanes, perOpen, { counters, errors })
return { 'departed', left }
