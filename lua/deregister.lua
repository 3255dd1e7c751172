--- Removes a worker from the registry when it closes, and counts what it did since its last report.
--
-- KEYS
--   open          hash  id -> generation
--   workers       zset  boot id -> time of its last sign of life
--   workerInfo    hash  boot id -> JSON
--   series        list  how the queue worked in the last hour
--   history       zset  id -> time of its end
--   counters      hash  counts of this queue
--   errors        list  the last errors
--   pushed        hash  priority -> tokens ever pushed to its list
--   parked        hash  id -> 'generation task'
--   parkedByTask  zset  'task\0id' of those, all of score 0
--   lists...      list  the token lists and lanes that `named` names
-- ARGV
--   worker  string  boot id
--   named   string  which lists are among the keys, as an earlier call answered them, or ''
--   info    string  the last JSON about the worker; it begins with its figures (lib/series); '': there is none
-- REPLIES
--   {'departed', left: text}  it is not in the registry any more
--      left: '', or which lists are left to be cleared away, as 0,50,50:due : call again with those
-- REPEAT  the same reply
-- FLAGS allow-oom

--- @include now, series, sweep

local open, workers, workerInfo, series, history, counters, errors, pushed, parked, parkedByTask =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local lists = { unpack(KEYS, 11) }
local worker, named, info = ARGV[1], ARGV[2], ARGV[3]

-- cure: the last report of a worker counts once
if redis.call('ZSCORE', workers, worker) then
  noteFigures(series, workers, workerInfo, worker, info, now())
end
redis.call('ZREM', workers, worker)
redis.call('HDEL', workerInfo, worker)
if redis.call('EXISTS', open) == 1 then
  return { 'departed', '' }
end
local perQueue = { counters, errors, series }
return { 'departed', sweep(workers, history, pushed, named, lists, { parked, parkedByTask }, perQueue) }
