--- What a tick does to one request: withdraws expired permits, reclaims what any consumer without a
--- permit holds (and counts the crash, if its lease ended), follows up a lost producer and the
--- deadline, audits the tokens and mints those that are missing, finishes what a crash left half done, and says when to
--- look again.
--
-- KEYS
--   request   hash    state of the request
--   work      stream  its sub-requests
--   due       zset    delayed and returned sub-requests
--   tries     hash    index -> failed attempts; 'index:crashes' -> crashes; 'index:alone' -> worker
--   progress  hash    index -> what its handler last reported
--   failed    hash    index -> error; 'index:payload' -> payload
--   results   stream  outcomes in the order of settling
-- ARGV
--   generation   int     under which the queue side has the id open
--   passed       string     epoch whose tokens have all been popped a grace ago, or ''
--   channel      string  shard channel of the request
--   auditMs      int     until the next look at a request that workers hold
--   tombstoneMs  int     how long a voided generation is remembered
--   resumedAt    int     when Redis was last back after it had been away; 0: never
--   tickedAt     int     when the tick claimed it; 0: not known
--   awayMs       int     when that is so long ago, Redis was away in between, for all this look knows
--   gapAt        int     when a gap between two ticks ended …
--   gapMs        int     … and how long it was: who has a shorter lease could not renew it
-- REPLIES
--   {'ok', mint: int, epoch: int, priority: text, before: text, next: int, parked: int, task: text, reclaimed: int, crashed: text}
--      before: epoch whose tokens are still out, or '' · next: time of the next look, or 0 when
--      only tokens are out · parked: 1 when no worker that serves its task has met it
--      reclaimed: how many sub-requests it took back · crashed: how many of those it settled as failed, as their
--      workers ended too often, and the first 100 of their indexes: 'count index …'; '': none
--   {'complete', outcome: outcome, spentAt: int?, crashed: text?}  finish it on the queue side · spentAt: for `finish`, or 0
--   {'gone'}               no such life (and there will be none): finish it on the queue side
-- REPEAT  nothing is withdrawn, counted, settled or minted twice
-- FLAGS allow-oom

--- @include now, state, record-id, books, tokens, cancel, exceeded, replace, complete, crashes, terms, tend-page, reclaim, ended-early

local request, work, due, tries, progress, failed, results =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local generation, passed, channel, auditMs, tombstoneMs, resumedAt =
  ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local tickedAt, awayMs, gapAt, gapMs =
  tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10])

local state = readState(request, generation)
if not state then
  -- The intent never became a request. A create that is still on its way has to find that out.
  local v = redis.call('HMGET', request, 'generation', 'status', 'voided')
  if not v[1] or (tonumber(v[1]) < tonumber(generation) and (v[2] == 'void' or v[2] == 'dropped')) then
    -- What was dropped stays so, or a drop whose second half was cut off could not be taken up again.
    redis.call('HSET', request, 'generation', generation, 'status', v[2] or 'void')
    redis.call('PEXPIRE', request, tombstoneMs)
  elseif tonumber(v[1]) < tonumber(generation) then
    redis.call('HSET', request, 'voided', math.max(tonumber(generation), tonumber(v[3]) or 0))
    redis.call('PEXPIRE', request, tombstoneMs, 'GT')
  end
  return { 'gone' }
end
if state.status == 'complete' then
  return { 'complete', unpack(redis.call('HMGET', request, 'outcome', 'spentAt')) }
end

local at = state.at
local v = redis.call('HMGET', request, 'producerUntil', 'onProducerLost', 'parked', 'task',
  'maxCrashes', 'lateTick', 'deadline', 'leaseMs', 'deadlineMs', 'heldFor', 'tendedAt', 'longestDelayMs',
  'createdAt', 'looked')
local wentBack = (tonumber(v[11]) or tonumber(v[13]) or 0) > at
state.heldUntil = endsHold(request, state.heldUntil, v[10], at)
local deadline = notBeyond(request, 'deadline', tonumber(v[7]) or math.huge, at, v[9])
local leaseMs = tonumber(v[8])
local producerUntil = notBeyond(request, 'producerUntil', tonumber(v[1]), at, leaseMs)
-- This tend was under way for longer than an outage is long: it was sent before anybody knew that Redis was away.
-- It gives every lease its full term again, and the next tend, which comes soon, decides. That one is not treated
-- as late again: if the clocks of two servers differ by so much, every tend would seem late, and a dead worker
-- would keep its permits for ever.
local late, lateTick = tickedAt > 0 and at - tickedAt > awayMs, tonumber(v[6])
if lateTick and lateTick - tickedAt > 4 * awayMs then
  -- Of a clock that went back since.
  lateTick = nil
end
local stale = late and (state.granted > 0 or state.status == 'open')
  and not (lateTick and tickedAt > lateTick)
local grace = graceOf(stale, late, at, tickedAt, resumedAt, gapAt, gapMs)
if stale then
  redis.call('HSET', request, 'lateTick', math.max(tickedAt, lateTick or 0))
elseif v[6] and not late then
  redis.call('HDEL', request, 'lateTick')
end
if state.status == 'open' then
  producerUntil = leaseEnds(request, 'producerUntil', producerUntil, leaseMs, at, grace)
  if producerUntil <= at then
    redis.call('HSET', request, 'producerLost', 1)
    if v[2] == 'seal' then
      state.status = 'sealed'
      redis.call('HSET', request, 'status', 'sealed')
    else
      endEarly(request, state, 'producer-lost')
    end
  end
end
if state.status ~= 'cancelling' and deadline <= at then
  endEarly(request, state, 'deadline')
end
-- A request of an older producer says nothing of crashes.
state.maxCrashes = tonumber(v[5]) or 3
local keys = {
  request = request, work = work, due = due, tries = tries, failed = failed, results = results,
  tried = {},
}
if wentBack then
  delaysWentBack(due, at, tonumber(v[12]))
end
local page = readWorkers(request, work, v[14])
local nextLease, ended, holding, causes = withdrawExpired(request, state, at, grace, page.fields)
local more = reclaim(keys, state, ended, holding, causes, page.names)
nextLease = nextPage(request, page, v[14], more or nextLease == at + 1, nextLease, at)
endIfExceeded(request, state)
local left = 0
if state.status == 'cancelling' then
  left = cancelIdle(request, state, work, due, at)
end

local spent = { kept = { failed, results }, keys = { work, due, tries, progress } }
local outcome = completeIfDone(request, state, at, channel, spent)
if outcome then
  return { 'complete', outcome, state.spentAt or 0, crashedIn(keys) }
end

-- The audit. Tokens of the epoch before that were popped a grace ago and never entered are lost.
if state.outBefore > 0 and tonumber(passed) == state.epoch - 1 then
  state.outBefore = 0
end
if state.outBefore == 0 and state.out > 0 then
  state.outBefore, state.out, state.epoch = state.out, 0, state.epoch + 1
end
redis.call('HSET', request, 'out', state.out, 'outBefore', state.outBefore, 'epoch', state.epoch,
  'tendedAt', at)
local books = readBooks(state, work, due, at, state.status == 'cancelling' and left or nil)
local mint = topUp(request, state, books)
local before = state.outBefore > 0 and tostring(state.epoch - 1) or ''

local next = math.huge
if books.inFlight > 0 or state.granted > 0 then
  next = math.min(at + auditMs, nextLease)
end
if state.out > 0 and before == '' then
  -- Minted by this look: no mark watches over them before the next one.
  next = math.min(next, at + auditMs)
end
if state.status == 'open' then
  next = math.min(next, producerUntil)
  if before == '' then
    -- Items may come at any time, and nothing but a token that is watched tells that somebody works at them.
    next = math.min(next, at + auditMs)
  end
end
if books.delayed > 0 then
  local first = redis.call('ZRANGEBYSCORE', due, '(' .. at, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
  next = math.min(next, tonumber(first))
end
if state.status ~= 'cancelling' then
  next = math.min(next, deadline)
end
if state.heldUntil > at then
  next = math.min(next, state.heldUntil)
end
if left > 0 or more or stale then
  next = math.min(next, at + 1)
end
someAtATime('HDEL', tries, keys.tried)
return {
  'ok', mint, state.epoch, state.priority, before, next < math.huge and next or 0,
  v[3] and 1 or 0, v[4], state.reclaimed or 0, crashedIn(keys),
}
