--- Gives sub-requests their outcome, keeps or returns permits, completes the request. The one hot
--- script: it takes everything that a worker finished for this request in one turn.
---
--- An outcome is four arguments: entry, kind, value, number.
---   's' success  value: result                      number: unused
---   'f' failure  value: error                       number: delayMs before the next attempt, if any is left
---   'b' back     read or started, but not finished  number: unused
---
--- `keep` is the number of permits that the worker means to hold, absolute, so that a call that
--- arrives twice frees nothing twice; it is never below `running`, the handlers that still run.
--
-- KEYS
--   request   hash    state of the request
--   work      stream  its sub-requests
--   due       zset    delayed and returned sub-requests
--   tries     hash    index -> failed attempts
--   progress  hash    index -> what its handler last reported
--   failed    hash    index -> error; 'index:payload' -> payload
--   results   stream  outcomes in the order of settling: index, result or !index, attempts
-- ARGV
--   generation   int     of the request
--   worker       string  boot id of the worker process
--   leaseMs      int     how long the permits last from here
--   keep         int     permits to hold
--   running      int     handlers still running
--   channel      string  shard channel of the request
--   outcomes...  string  four for each
-- REPLIES
--   {'ok', permits, mint, epoch, priority, dueNow, nextDue}  permits is absolute; nextDue 0: none
--   {'complete', outcome}  the request is complete
--   {'gone'}               no such life
-- REPEAT  the same permits; nothing is counted, parked or freed again
-- FLAGS allow-oom

--- @include now, state, books, tokens, outcomes, trim, complete

local request, work, due, tries, progress, failed, results =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local generation, worker, leaseMs, keep, running, channel =
  ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6]
local permitsField, leaseField = 'permits:' .. worker, 'lease:' .. worker

local state = readState(request, generation)
if not state then
  return { 'gone' }
end
if state.status == 'complete' then
  return { 'complete', redis.call('HGET', request, 'outcome') }
end
local at = now()
local v = redis.call('HMGET', request, permitsField, 'results', 'attempts', 'pinned')
local permits, pinned = tonumber(v[1]) or 0, v[4]
state.keepResults, state.attempts = v[2] == 'keep', tonumber(v[3])

local keys = {
  work = work, due = due, tries = tries, failed = failed,
  anyDue = redis.call('EXISTS', due) == 1,
}
local reporting = redis.call('EXISTS', progress) == 1
local before, records, gaveBack, newest = state.settled, {}, false, nil
for i = 7, #ARGV, 4 do
  local id, kind, value = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local index = id:match('%d+$')
  if kind == 's' then
    succeed(keys, state, id, index, value, records)
  elseif kind == 'f' then
    fail(keys, state, worker, id, index, value, tonumber(ARGV[i + 3]), at, records)
    gaveBack = true
  else
    giveBack(keys, worker, id)
    gaveBack = true
  end
  if pinned then
    local still = redis.call('XPENDING', work, 'workers', id, id, 1)[1]
    if not still then
      redis.call('XDEL', work, id)
    end
  end
  if reporting then
    redis.call('HDEL', progress, index)
  end
  if not newest or tonumber(index) > tonumber(newest:match('%d+$')) then
    newest = id
  end
end
state.settled = state.succeeded + state.failed + state.cancelled

local freed = 0
if permits > 0 then
  local excess = math.max(0, state.granted - state.limit)
  local allow = math.min(keep, math.max(running, permits - excess))
  if state.halted or state.status == 'cancelling' then
    allow = math.min(allow, running)
  end
  freed = permits - allow
  permits = allow
  state.granted = state.granted - freed
  if allow == 0 then
    redis.call('HDEL', request, permitsField, leaseField)
  else
    redis.call('HSET', request, permitsField, allow, leaseField, at + leaseMs)
  end
end
redis.call('HSET', request, 'succeeded', state.succeeded, 'failed', state.failed,
  'cancelled', state.cancelled, 'granted', state.granted)
if #records > 0 then
  redis.call('XADD', results, generation .. '-' .. state.settled, unpack(records))
end

local spent = { kept = { failed, results }, keys = { work, due, tries, progress } }
local outcome = completeIfDone(request, state, at, channel, spent)
if outcome then
  return { 'complete', outcome }
end
if newest and math.floor(before / 64) < math.floor(state.settled / 64) then
  trim(request, work, newest, pinned)
end
local mint, dueNow, nextDue = 0, 0, 0
if freed > 0 or gaveBack then
  mint = topUp(request, state, readBooks(state, work, due, at))
end
if redis.call('EXISTS', due) == 1 then
  dueNow = redis.call('ZCOUNT', due, '-inf', at)
  nextDue = redis.call('ZRANGEBYSCORE', due, '(' .. at, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2] or 0
end
return { 'ok', permits, mint, state.epoch, state.priority, dueNow, tonumber(nextDue) }
