--- Takes a request that ended off the queue side. Gated by generation, so that it happens once and
--- never to the next life of the id.
--
-- KEYS
--   open        hash  id -> generation
--   agenda      zset  id -> time of its next attention
--   wait        zset  id -> priority * 2^44 + mark
--   marks       hash  id -> 'epoch' or 'epoch:passedAt'
--   parked      hash  id -> 'generation task'
--   parkedByTask      zset  'task\0id' of those, all of score 0
--   pushed      hash  priority -> tokens ever pushed to its list
--   counters    hash  counts of this queue
--   history     zset  id -> time of its end
--   errors      list  the last errors
--   workers     zset  boot id -> time of its last sign of life
--   workerInfo  hash  boot id -> JSON
--   spent       zset  'id~generation' -> when to unlink what is kept of it, of those that keep much
--   lists...    list  all token lists, and the lanes that `lanes` names
-- ARGV
--   id          string  of the request
--   generation  int     of the request
--   outcome     string  'succeeded', 'failed', 'cancelled': remembered; 'dropped', 'gone': forgotten
--   historyMs   int     how long an ended id is remembered
--   historyMax  int     how many are remembered
--   spentAt     int     server time at which to unlink what it keeps; 0: it goes by itself
--   lanes       string  what an earlier call answered, or ''
-- REPLIES
--   {'finished', lanes: text}  done by this call
--   {'closed', lanes: text}    was not open under this generation
--      lanes: '', or which lanes are left to be cleared away: call again with those
-- REPEAT  'closed'
-- FLAGS allow-oom

--- @include now, sweep, parked

local open, agenda, wait, marks, parked, parkedByTask, pushed, counters, history, errors, workers, workerInfo, spent =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11],
  KEYS[12], KEYS[13]
local id, generation, outcome, historyMs, historyMax, spentAt, lanes =
  ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7]
local lists = { unpack(KEYS, 14) }

local forget = outcome == 'dropped' or outcome == 'gone'
local known = redis.call('HGET', open, id)
local verdict = known == generation and 'finished' or 'closed'
if verdict == 'finished' then
  redis.call('HDEL', open, id)
  redis.call('HDEL', marks, id)
  noteUnpark(parked, parkedByTask, id)
  redis.call('ZREM', agenda, id)
  redis.call('ZREM', wait, id)
  redis.call('HINCRBY', counters, outcome, 1)
  -- The next life of this id has a greater one.
  if tonumber(generation) >= (tonumber(redis.call('HGET', counters, 'generation')) or 0) then
    redis.call('HSET', counters, 'generation', generation + 1)
  end
end
local later = known and tonumber(known) > tonumber(generation)
if outcome == 'dropped' and (verdict == 'finished' or not known or later) then
  -- Also the end of an earlier life, which a repeat of this call would forget. A later life that is
  -- open has no end yet; if its intent comes to nothing, nobody else forgets that of this one.
  redis.call('ZREM', history, id)
  redis.call('ZREM', spent, id .. '~' .. generation)
elseif verdict == 'finished' and not forget then
  local at = now()
  redis.call('ZADD', history, at, id)
  redis.call('ZREMRANGEBYSCORE', history, '-inf', at - historyMs)
  redis.call('ZREMRANGEBYRANK', history, 0, -historyMax - 1)
end
redis.call('PEXPIRE', history, historyMs)
if spentAt > 0 and not forget and (verdict == 'finished' or redis.call('ZSCORE', history, id)) then
  -- Whoever comes too late to be the one that finishes it says the same; of what was dropped since there is no end.
  local leftMs = math.max(1, spentAt - now()) + 600000
  redis.call('ZADD', spent, spentAt, id .. '~' .. generation)
  redis.call('PEXPIRE', spent, leftMs, 'NX')
  redis.call('PEXPIRE', spent, leftMs, 'GT')
end
local perOpen = { agenda, wait, marks, parked, parkedByTask, unpack(lists) }
local perQueue = { counters, errors, workerInfo }
return { verdict, sweep(open, workers, history, pushed, lanes, perOpen, perQueue) }
