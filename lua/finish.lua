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

--- @include now, digits, sweep, parked, ends, finish

local open, agenda, wait, marks, parked, parkedByTask, pushed, counters, history, errors, workers, workerInfo =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11],
  KEYS[12]
local series, spent = KEYS[13], KEYS[14]
local lists = { unpack(KEYS, 15) }
local historyMs, historyMax, named = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
local ends = { unpack(ARGV, 4) }

local left, finished = finishAll(now(), ends, historyMs, historyMax, named, lists, open, agenda, wait, marks, parked,
  parkedByTask, pushed, counters, history, errors, workers, workerInfo, series, spent)
return { 'done', finished, left }
