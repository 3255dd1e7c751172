--- Removes requests that ended from the queue side, up to 200 in one call. Each is gated by its generation, so that it
--- happens once and never to the next generation of the id. The ends count in the order in which they are named.
--
-- KEYS
--   open          hash  id -> generation
--   agenda        zset  id -> time of its next attention
--   wait          zset  id -> priority * 2^44 + mark
--   marks         hash  id -> 'epoch' or 'epoch:passedAt'
--   parked        hash  id -> 'generation task'
--   parkedByTask  zset  'task\0id' of those, all of score 0
--   pushed        hash  priority -> tokens ever pushed to its list
--   counters      hash  counts of this queue
--   history       zset  id -> time of its end
--   errors        list  the last errors
--   workers       zset  boot id -> time of its last sign of life
--   workerInfo    hash  boot id -> JSON
--   series        list  how the queue worked in the last hour
--   spent         zset  'id~generation' -> when to unlink what is kept of it, of those that keep much
--   lists...      list  the token lists and lanes that `named` names
-- ARGV
--   historyMs   int     how long an ended id is remembered
--   historyMax  int     how many are remembered, and some more
--   named       string  which lists are among the keys, as an earlier call answered them, or ''
--   ends...     (id string, generation int, outcome string, spentAt int)  up to 200
--                       outcome: 'succeeded', 'failed', 'cancelled': remembered; 'dropped', 'gone': forgotten ·
--                       spentAt: server time at which to unlink what it keeps; 0: it goes by itself
-- REPLIES
--   {'done', finished: int, left: text}
--      finished: how many were open under their generation · left: '', or which lists are left to be cleared away,
--      as 0,50,50:due : call again with those
-- REPEAT  finishes none
-- FLAGS allow-oom

--- @include now, digits, sweep, parked, ends

local open, agenda, wait, marks, parked, parkedByTask, pushed, counters, history, errors, workers, workerInfo =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11],
  KEYS[12]
local series, spent = KEYS[13], KEYS[14]
local lists = { unpack(KEYS, 15) }
local historyMs, historyMax, named = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
local ends = { unpack(ARGV, 4) }

local at = now()
local found = readEnds(open, history, ends, digits(at))
local finished = found.finished
local shorten = false
if #finished > 0 then
  redis.call('HDEL', open, unpack(finished))
  shorten = countEnds(counters, found)
end
noteHistory(history, found.ended, at, historyMs, historyMax, shorten)
noteSpent(spent, found.spent, at)
if redis.call('EXISTS', open) == 0 then
  -- An unused queue forgets its counts.
  redis.call('PEXPIRE', counters, digits(historyMs))
  local perOpen, perQueue = { agenda, wait, marks, parked, parkedByTask }, { counters, errors, workerInfo, series }
  return { 'done', #finished, sweep(workers, history, pushed, named, lists, perOpen, perQueue) }
end
if #finished > 0 then
  redis.call('HDEL', marks, unpack(finished))
  local tended = {}
  for i, id in ipairs(finished) do
    tended[2 * i - 1], tended[2 * i] = id, id .. '~'
  end
  redis.call('ZREM', agenda, unpack(tended))
  redis.call('ZREM', wait, unpack(finished))
  noteUnpark(parked, parkedByTask, finished)
end
return { 'done', #finished, '' }
