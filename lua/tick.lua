--- One look at the agenda: notes which requests have had all their earlier tokens popped, and
--- claims the ids that are due by moving their time ahead. A claimer that dies simply fires again.
--- A worker says with it that it lives.
--
-- KEYS
--   open        hash  id -> generation
--   agenda      zset  id -> time of its next attention
--   wait        zset  id -> priority * 2^44 + mark: asleep until its list has been popped up to mark;
--                     (100 + priority) * 2^44 + due: until what is due before it has left its lane
--   marks       hash  id -> 'epoch' or 'epoch:passedAt'
--   pushed      hash  priority -> tokens ever pushed to its list
--   parked      hash  id -> 'generation task'
--   parkedByTask      zset  'task\0id' of those, all of score 0
--   workers     zset  boot id -> time of its last sign of life
--   workerInfo  hash  boot id -> JSON
--   counters    hash  time of the last tick; when Redis was last back after it had been away; the longest gap
--                     between two ticks that still matters; the latest time by which an id was opened;
--                     how far the agenda is shifted
--   spent       zset  'id~generation' -> when to unlink what is kept of it, of those that keep much
--   paused      hash  until: when the pause of the queue ends by itself, 0: never; length: 'until ms'
--   lists...    list  tokens of the priorities 0 … 99, and the lanes that `lanes` names
-- ARGV
--   worker   string  boot id, or '' when a producer or notifier ticks
--   info     string  JSON about the worker
--   lockMs   int     how long a claim lasts
--   graceMs  int     from a token's pop to its enter at the latest
--   max      int     how many to claim at most
--   goneMs   int     a worker without a sign of life for so long is struck out
--   awayMs   int     when nobody ticked for so long, Redis was away …
--   awayPerWorkerMs  int  … or for so long times the number of workers
--   lanes    string  priorities whose lanes are among the lists, '5,50', or ''
--   tasks    string  ' name name ' of the tasks whose parked requests are wanted, '*' for all, '' for none
--   after    string  entry of the index behind which to go on with the first of them, or ''
--   maxParked  int   how many parked requests to answer at most
-- REPLIES
--   {'ok', now: int, next: int, fleet: int, claims: list(id text, generation int, passed text, claim int),
--    parked: list(id text, life text), resumedAt: int, pausedUntil: int, lanes: text, after: text, spent: list, gapAt: int, gapMs: int}
--      next: time of the earliest agenda entry, or -1 · fleet: number of live workers
--      resumedAt: when Redis was last back; no lease that it kept from being renewed is over before
--      pausedUntil: when the queue goes on; 0: when it is resumed; -1: it is not paused
--      lanes: priorities whose lanes are used, or waited for, as in the argument
--      gapAt, gapMs: when a gap between two ticks ended, and how long it was
--      claims: {id, generation, passed, claim, …} · parked: {id, 'generation task', …}
--      after: what to name next time; '': these were all · spent: {'id~generation', …} to be unlinked now
-- REPEAT  claims what else is due
-- FLAGS allow-oom

--- @include now, lane, clock-back, pause, parked, parked-page

local open, agenda, wait, marks, pushed, parked, parkedByTask, workers, workerInfo, counters, spent, paused =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11],
  KEYS[12]
local lists = { unpack(KEYS, 13) }
local worker, info, lockMs, graceMs, max, goneMs =
  ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local awayMs, awayPerWorkerMs, lanes = tonumber(ARGV[7]), tonumber(ARGV[8]), ARGV[9]
local tasks, after, maxParked = ARGV[10], ARGV[11], tonumber(ARGV[12])

local at = now()
local span = 2 ^ 44

-- A live fleet ticks more often than this, so Redis was away (or there was no fleet). Only a fleet that
-- ticked at least twice since the last time is granted another grace, or a Redis that comes and goes
-- would have a dead worker keep its permits for ever. Without the key nothing was ever open.
local resumedAt, gapAt, gapMs = 0, 0, 0
if redis.call('EXISTS', counters) == 1 then
  local v = redis.call('HMGET', counters, 'tickedAt', 'resumedAt', 'gapAt', 'gapFrom', 'openedAt')
  local tickedAt = tonumber(v[1]) or at
  local known = tonumber(v[2]) or 0
  -- What lies ahead is of a clock that went back since.
  resumedAt, gapAt = math.min(known, at), tonumber(v[3]) or 0
  gapMs = gapAt - (tonumber(v[4]) or gapAt)
  local away = at - tickedAt > math.max(awayMs, redis.call('ZCARD', workers) * awayPerWorkerMs)
  if away and tickedAt ~= resumedAt then
    resumedAt = at
  end
  -- As long as a lease that is shorter than the longest gap may have been kept from being renewed by it.
  -- A longer one is an outage, which has the rule above.
  local gap = away and 0 or math.max(0, at - tickedAt)
  if at + gap >= gapAt + gapMs or gapAt > at then
    gapAt, gapMs = at, gap
  end
  if resumedAt ~= known then
    redis.call('HSET', counters, 'resumedAt', resumedAt)
  end
  redis.call('HSET', counters, 'tickedAt', at, 'gapAt', gapAt, 'gapFrom', gapAt - gapMs)
  -- Ids are opened between two ticks, also before the first.
  local seenAt = math.max(tickedAt, tonumber(v[5]) or 0)
  if seenAt > at then
    clockWentBack(counters, seenAt - at, at)
    redis.call('HDEL', counters, 'openedAt')
  end
  shiftAgenda(counters, agenda)
end
signsOfLife(workers, at)

if worker ~= '' then
  redis.call('ZADD', workers, at, worker)
  redis.call('HSET', workerInfo, worker, info)
  redis.call('PEXPIRE', workers, 10 * goneMs)
  redis.call('PEXPIRE', workerInfo, 10 * goneMs)
end
for _, dead in ipairs(redis.call('ZRANGEBYSCORE', workers, '-inf', at - goneMs, 'LIMIT', 0, 500)) do
  redis.call('ZREM', workers, dead)
  redis.call('HDEL', workerInfo, dead)
end

-- So many may be found passed by one look, in all; what is found waits no longer, so the next goes on.
local room = 500

-- Lists are first in, first out: when as many were ever popped as had been pushed at the mark,
-- every token counted before it has been popped.
local function passedInList(priority)
  local base = priority * span
  local ever = tonumber(redis.call('HGET', pushed, priority)) or 0
  local popped = ever - redis.call('LLEN', lists[priority + 1])
  return redis.call('ZRANGEBYSCORE', wait, base, base + popped, 'LIMIT', 0, room)
end

-- A lane is in order of due time: what goes before its next token has none in it any more. What goes
-- before, and has a token to come, would get a slot before all others anyway.
local laneOf, given, lanesToTell = {}, 100, {}
for priority in lanes:gmatch('%d+') do
  given = given + 1
  laneOf[tonumber(priority)] = lists[given]
end
local function passedInLane(priority)
  local lane, base = laneOf[priority], (100 + priority) * span
  if not lane then
    -- Whoever ticks here does not know it yet, and does with the reply: also of a lane into which no token
    -- ever came, because the one that is waited for was lost before.
    lanesToTell[#lanesToTell + 1] = priority
    return {}
  end
  local first = redis.call('LINDEX', lane, -1)
  if not first then
    return redis.call('ZRANGEBYSCORE', wait, base, base + span - 1, 'LIMIT', 0, room)
  end
  local _, due = placeInLane(first)
  local passed = {}
  local waiting = redis.call('ZRANGEBYSCORE', wait, base, base + due, 'WITHSCORES', 'LIMIT', 0, room)
  for i = 1, #waiting, 2 do
    local generation = tonumber(redis.call('HGET', open, waiting[i])) or 0
    if goesBefore(generation, waiting[i + 1] - base, first) then
      passed[#passed + 1] = waiting[i]
    end
  end
  return passed
end

local from = 0
while room > 0 do
  local first = redis.call('ZRANGEBYSCORE', wait, from, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  if not first[1] then
    break
  end
  local priority = math.floor(tonumber(first[2]) / span)
  local passed = priority < 100 and passedInList(priority) or passedInLane(priority - 100)
  for _, id in ipairs(passed) do
    local epoch = (redis.call('HGET', marks, id) or '0'):match('^%d+')
    redis.call('ZREM', wait, id)
    redis.call('HSET', marks, id, epoch .. ':' .. at)
    redis.call('ZADD', agenda, 'LT', at + graceMs, id)
  end
  room = room - #passed
  from = (priority + 1) * span
end

local claims = {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', agenda, '-inf', at, 'LIMIT', 0, max)) do
  local generation = redis.call('HGET', open, id)
  if generation then
    local epoch, passedAt = (redis.call('HGET', marks, id) or ''):match('^(%d+):(%d+)$')
    if epoch and tonumber(passedAt) > at then
      passedAt = at
      redis.call('HSET', marks, id, epoch .. ':' .. at)
    end
    local passed = epoch and passedAt + graceMs <= at and epoch or ''
    redis.call('ZADD', agenda, at + lockMs, id)
    claims[#claims + 1] = id
    claims[#claims + 1] = generation
    claims[#claims + 1] = passed
    claims[#claims + 1] = at + lockMs
  else
    redis.call('ZREM', agenda, id)
  end
end
local next = redis.call('ZRANGE', agenda, 0, 0, 'WITHSCORES')[2] or -1
lanesToTell[#lanesToTell + 1] = redis.call('HGET', pushed, 'lanes') or nil
local pausedUntil = pauseEnds(paused, at)

-- Moved ahead like a claim, until it is said to be gone.
local over = redis.call('ZRANGEBYSCORE', spent, '-inf', at, 'LIMIT', 0, 10)
for _, life in ipairs(over) do
  redis.call('ZADD', spent, at + lockMs, life)
end
local found, behind = {}, ''
if tasks ~= '' then
  indexSome(parked, parkedByTask, counters)
  found, behind = parkedPage(parked, parkedByTask, tasks, after, maxParked)
end
return {
  'ok', at, tonumber(next), redis.call('ZCARD', workers), claims, found, resumedAt, pausedUntil,
  table.concat(lanesToTell, ','), behind, over, gapAt, gapMs,
}
