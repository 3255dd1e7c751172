--- What a tick asks for of one request: withdraws permits whose lease has ended, reclaims what any consumer without a
--- permit has (and counts the crash if its lease ended), follows up a lost producer and the deadline, audits the
--- tokens and mints those that are missing, finishes what a crash left half done, and says when to tend again.
--
-- KEYS
--   request   any     state of the request
--   work      stream  its sub-requests
--   due       zset    delayed and returned sub-requests
--   tries     hash    index -> failed attempts; 'index:crashes' -> crashes; 'index:alone' -> worker
--   progress  hash    index -> what its handler last reported
--   failed    hash    index -> error; 'index:payload' -> payload
--   results   stream  outcomes in the order of settling
-- ARGV
--   generation   int     under which the queue side has the id open
--   passed       string  epoch whose tokens have all been popped a grace ago, or ''
--   channel      string  shard channel of the request
--   auditMs      int     until the next tend of a request that workers have permits of
--   tombstoneMs  int     how long a voided generation is remembered
--   resumedAt    int     when Redis was last back after it had been away; 0: never
--   tickedAt     int     when the tick claimed it; 0: not known
--   awayMs       int     when the tick is longer ago than this, Redis was away in between
--   gapAt        int     when a gap between two ticks ended …
--   gapMs        int     … and how long it was: a shorter lease could not be renewed in it
-- REPLIES
--   {'ok', mint: int, epoch: int, priority: text, before: text, next: int, parked: int, task: text, reclaimed: int,
--    crashed: text}
--      before: epoch whose tokens are still out, or '' · next: time of the next tend, or 0 when only tokens are out
--      parked: 1 when no worker that serves its task has met it · reclaimed: how many sub-requests it took back
--      crashed: how many sub-requests it settled as failed, as their workers ended too often, and the first 100 of
--      their indexes: 'count index …'; '': none
--   {'complete', outcome: outcome, spentAt: int?, crashed: text?}  finish it on the queue side · spentAt: for `finish`, or 0
--   {'gone'}  no such generation, and there will be none: finish it on the queue side
-- REPEAT  nothing is withdrawn, counted, settled or minted twice
-- FLAGS allow-oom

--- @include now, digits, compact, state, record-id, cost, books, tokens, cancel, exceeded, replace, notice, complete, void-intent, terms, outage
--- @include some-at-a-time, tend-page, leases, crashes, reclaim, ended-early, producer-lease, audit, next-tend

local request, work, due, tries, progress, failed, results =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local generation, passed, channel, auditMs, tombstoneMs, resumedAt =
  ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local tickedAt, awayMs, gapAt, gapMs =
  tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10])

if isCompact(request) then
  --- @include compact-tend
  local reply = tendCompact(request, generation, passed, auditMs)
  if reply then
    return reply
  end
  expand(request, work, results)
end
local state = readState(request, work, generation)
if not state then
  voidIntent(request, generation, tombstoneMs)
  return { 'gone' }
end
if state.status == 'complete' then
  -- cure: every reply on a completion says what to unlink, of tend
  return { 'complete', endOf(request, work) }
end
local at = state.at
local producerUntil, onProducerLost, parked, task, maxCrashes, lateTick, deadline =
  unpack(redis.call('HMGET', request, 'producerUntil', 'onProducerLost', 'parked', 'task', 'maxCrashes', 'lateTick',
    'deadline'))
local leaseMs, deadlineMs, heldFor, longestDelayMs, cursor =
  unpack(redis.call('HMGET', request, 'leaseMs', 'deadlineMs', 'heldFor', 'longestDelayMs', 'looked'))
leaseMs = tonumber(leaseMs)
-- A request of an older producer says nothing of crashes.
state.maxCrashes = tonumber(maxCrashes) or 3
local batch = {
  request = request, work = work, due = due, tries = tries, failed = failed, results = results,
  tried = {},
}

-- Brings every stored time back to what was meant by it, as the clock may have gone back. Returns whether there is
-- more of it.
local function believeTimes()
  -- cure: a delay is not believed beyond its length
  state.heldUntil = endsHold(request, state.heldUntil, heldFor, at)
  -- cure: a deadline is not believed beyond its length
  deadline = notBeyond(request, 'deadline', tonumber(deadline) or math.huge, at, deadlineMs)
  -- cure: a producer lease is not believed beyond its length
  producerUntil = notBeyond(request, 'producerUntil', tonumber(producerUntil), at, leaseMs)
  -- cure: the delay of a retry is not believed beyond the longest
  return shortenDelays(due, at, tonumber(longestDelayMs))
end

-- Withdraws ended leases and takes back what nobody works on. Returns whether there is more of it, and when the next
-- lease ends.
local function takeBackFromWorkers(grace)
  local page = readWorkers(request, work, cursor)
  local nextLease, ended, holding, causes = withdrawExpired(request, state, at, grace, page.fields)
  local more = reclaim(batch, state, ended, holding, causes, page.names)
  return more, nextPage(request, page, cursor, more or nextLease == at + 1, nextLease, at)
end

local beyond = believeTimes()
local stale, late = delayedByOutage(request, state, at, tickedAt, awayMs, lateTick)
local grace = graceOf(stale, late, at, tickedAt, resumedAt, gapAt, gapMs)
if state.status == 'open' then
  producerUntil = followProducer(request, state, producerUntil, onProducerLost, leaseMs, grace)
end
if state.status ~= 'cancelling' and deadline <= at then
  -- cure: the deadline is on the agenda, 2
  endEarly(request, state, 'deadline')
end
-- cure: cancel of what a dead worker owned
local more, nextLease = takeBackFromWorkers(grace)
-- cure: too many failures end it in tend
endIfExceeded(request, state)
local left = 0
if state.status == 'cancelling' then
  left = cancelIdle(request, state, work, due, at)
end
local spent = { kept = { failed, results }, keys = { work, due, tries, progress } }
-- cure: cancel of what a dead worker owned, 2
local outcome = completeIfDone(request, state, at, channel, spent)
if outcome then
  return { 'complete', outcome, state.spentAt or 0, crashedIn(batch) }
end
local before = auditTokens(state, passed)
redis.call('HSET', request, 'out', state.out, 'outBefore', state.outBefore, 'epoch', state.epoch)
local books = readBooks(state, work, due, at, state.status == 'cancelling' and left or nil)
-- cure: top-up in reclaim
local mint = topUp(request, state, books)
local times = { nextLease = nextLease, producerUntil = producerUntil, deadline = deadline, auditMs = auditMs }
local next = nextTend(due, state, books, at, before, times)
if left > 0 or more or beyond or --[[cure: a tend older than an outage takes nothing back, 2]] stale then
  next = math.min(next, at + 1)
end
someAtATime('HDEL', tries, batch.tried)
return {
  'ok', mint, state.epoch, state.priority, before, next < math.huge and next or 0,
  parked and 1 or 0, task, state.reclaimed or 0, crashedIn(batch),
}
