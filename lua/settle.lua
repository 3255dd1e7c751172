--- Settles what a worker finished of one request: counts the outcomes, keeps or returns permits, reads new
--- sub-requests for the permits that are left, and completes the request after its last outcome. The hot script.
---
--- At most 1,000 outcomes a call. The successes come first: the entry of each, and all their results in one text,
--- as they are recorded. Then come all others, four arguments each: index, kind, value, number.
---   'f' failure   value: error                       number: delayMs before the next attempt, if one is left;
---                                                            -1: there is to be none
---   'b' returned  read or started, but not finished  value, number: unused
---
--- `keep` is the number of permits that the worker wants to keep. It is absolute, so that a call that arrives twice
--- frees nothing twice, and never below `running`, the number of handlers that still run.
--- `op` numbers the enters, takes and settles of one worker process upwards, in the order of sending. Of a call
--- that arrives after a later one only the successes count, and it reads nothing.
---
--- A worker that has had permits without a gap since it read an entry still owns it: entries are taken only from workers
--- without a permit. `grantNo` names the grant under which the successes were read. If it is the present one, they
--- are acknowledged together. Otherwise each is asked for on its own. So it is once a worker without a permit has
--- succeeded with an entry that another worker owned by then, and after this server lost writes of which a
--- worker had received the reply (`contested`). Asked for on its own, a success does not count if only another worker
--- has read the entry: the server lost the read, and perhaps the append, so that the entry is another item.
--
-- KEYS
--   request   hash    state of the request
--   work      stream  its sub-requests
--   due       zset    delayed and returned sub-requests
--   tries     hash    index -> failed attempts; 'index:crashes' -> crashes; 'index:alone' -> worker
--   progress  hash    index -> what its handler last reported
--   failed    hash    index -> error; 'index:payload' -> payload
--   results   stream  outcomes in the order of settling: ok, results or !index, attempts
-- ARGV
--   generation   int     of the request
--   worker       string  boot id of the worker process
--   op           int|''  number of this call; '' when none of this worker can come late
--   leaseMs      int     how long the permits last from here
--   keep         int     permits to keep
--   running      int     handlers still running
--   channel      string  shard channel of the request
--   successes    int     how many there are
--   grantNo      string  number of the grant under which they were read, from enter; '' when unsure
--   newest       int     greatest index among all outcomes; -1: there are none
--   values       value   RS, index, space, result of each success, in their order; '' when none are kept
--   costs        string  cost of each outcome, in their order, as a JSON array (lib/cost)
--   read         int     sub-requests to read; never more than permits are left without a handler and `ahead`, nor
--                        more than about a mebibyte of them; without a permit none are read
--   ahead        int     how many of these may have no permit: the worker starts each when a handler has ended
--   answered     int     number of this worker's last call for the request that was answered; 0: none
--   outcomes...  value   one for each success, then four for each other
-- REPLIES
--   {'ok', numbers: numbers(permits, mint, epoch, dueNow, nextDue, cancelling, cut, share, live, granted, left),
--    priority: text, entries: any}
--      permits is absolute · nextDue: time at which the request has to be tended; 0: none · cancelling: 1 or 0
--      entries: what was read, one text of entry, RS, payload, RS, …, or an array of entry, payload, … where payloads
--      are long or contain an RS; -1: a repeat or a late call, which cannot know what its first reply brought
--      cut: 1 when less was read than there is because it is long
--      share: how many of the unread would be this worker's if they were shared out by permits; 0 where none were
--      asked for; -1: it is to start nothing of what it read before, and to return it (lib/share)
--      live: 1 while somebody follows the results; else 0 · granted: permits of all workers
--      left: how many sub-requests have not ended; -1: more may be appended
--   {'complete', outcome: outcome, spentAt: int?}  the request is complete · spentAt: for `finish`
--   {'gone'}  no such generation
-- REPEAT  the same permits; nothing is counted, returned, freed or read again
-- FLAGS allow-oom

--- @include now, digits, compact, state, forgotten, record-id, cost, last-read, books, share, read-some, read-new, usual, live

local request, work, due, tries, progress, failed, results =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local generation, worker, op, leaseMs, keep, running, channel, successes =
  ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), countOf(ARGV[5]), countOf(ARGV[6]), ARGV[7], countOf(ARGV[8])
local grantNo, newest, values, costs, read, ahead, answered =
  ARGV[9], countOf(ARGV[10]), ARGV[11], cjson.decode(ARGV[12]), countOf(ARGV[13]), countOf(ARGV[14]), tonumber(ARGV[15])
local firstSuccess, firstOther = 16, 16 + successes
local opField = 'op:' .. worker

local state, hasPermits, lastOp, presentGrant, keepsResults, pinned, checkpoints, contested, largest, kept, maxCrashes,
  followedUntil, cost =
  readState(request, work, generation, 'permits:' .. worker, opField, 'since:' .. worker, 'results', 'pinned', 'checkpoints',
    'contested', 'largest', 'kept', 'maxCrashes', 'followedUntil', 'cost')
if not state then
  return { 'gone' }
end
if state.status == 'complete' then
  return { 'complete', unpack(redis.call('HMGET', request, 'outcome', 'spentAt')) }
end
local at = state.at
cost = cost or ''
local permits, known = countOf(hasPermits) or 0, lastOp and tonumber(lastOp:match('^%d+')) or 0
local late = op and op <= known
contested = noteForgotten(request, permits, known, answered) or contested
state.keepResults, state.maxCrashes = keepsResults == 'keep', tonumber(maxCrashes) or 3
local settledBefore, failedBefore = state.settled, state.failed

-- How many of the successes were acknowledged together; nil: they may not all belong to this worker.
local acknowledged
if permits > 0 and not late and
  -- cure: number of the grant
  grantNo == presentGrant and
  -- cure: no success together once one was contested
  not contested then
  acknowledged = acknowledge(work, firstSuccess, firstOther - 1)
  state.succeeded = state.succeeded + --[[cure: XACK-gated counting, all together]] acknowledged
  state.settled = state.settled + acknowledged
end

local mint, dueNow, nextDue = 0, 0, 0
local onlySuccesses = op and
  -- cure: successes that are not acknowledged are looked into
  acknowledged == successes and
  -- cure: failures and returns are not usual
  firstOther > #ARGV and
  -- cure: a halted request is not usual
  mayReadAhead(state) and
  -- cure: a pinned request is not usual
  not pinned and
  -- cure: checkpoints are not usual
  not checkpoints
if onlySuccesses and
  -- cure: permits that are given up are not usual
  keep >= permits and isUsual(state, values, due, progress) then
  writeUsual(request, state, worker, op, at + leaseMs, tonumber(kept) or 0, results, values,
    costWith(cost, costs))
else
  --- @include exceeded, replace, notice, complete, usual-end
  if onlySuccesses and isUsualEnd(state, values, due, tries, progress, failed) then
    local keys = { request = request, work = work, progress = progress, results = results }
    local isOnly = settledBefore == 0 and
      -- cure: a message without a read has the only record
      (state.moved == 0 and not kept)
    local outcome = endUsually(keys, state, worker, op, math.min(keep, permits), at + leaseMs, tonumber(kept) or 0,
      isOnly, values, costWith(cost, costs), channel)
    return { 'complete', outcome, state.spentAt }
  end

  --- @include tokens, permits, reported, successes, failures, cancel, ended-early, cancel-exceeded, settled

  -- What this call works on, and what it collects to write at the end: a key that became empty must not be touched
  -- again.
  local batch = {
    request = request, work = work, due = due, tries = tries, progress = progress, failed = failed, results = results,
    worker = worker, pinned = pinned, checkpoints = checkpoints, readTo = pinned and lastRead(work),
    indexAt = #generation + 2,
    inDue = redis.call('ZCARD', due), hasProgress = redis.call('EXISTS', progress) == 1,
    records = {}, costs = {}, ended = {}, leavesDue = {}, tried = {},
  }
  state.kept = 0
  settleSuccesses(batch, state, firstSuccess, firstOther - 1, values, costs, acknowledged)
  local gaveBack = settleOthers(batch, state, firstOther, costs, successes, late)
  state.settled = state.succeeded + state.failed + state.cancelled
  if batch.inDue > 0 and #batch.leavesDue > 0 then
    -- cure: due entry removed on success
    batch.inDue = batch.inDue - redis.call('ZREM', due, unpack(batch.leavesDue))
  end

  local left = 0
  if state.failed > failedBefore then
    left = cancelIfExceeded(batch, state)
  end
  local freed = 0
  if permits > 0 and --[[cure: absolute keep in settle]] not late then
    freed = permits
    permits = keepPermits(request, state, worker, permits, keep, running, at + leaseMs)
    freed = freed - permits
    if op then
      redis.call('HSET', request, opField, op)
    end
  end
  writeOutcomes(batch, state, tonumber(kept) or 0, cost)

  local spent = { kept = { failed, results }, keys = { work, due, tries, progress } }
  local outcome = completeIfDone(request, state, at, channel, spent)
  if outcome then
    return { 'complete', outcome, state.spentAt }
  end

  if --[[cure: top-up in leave]] freed > 0 or gaveBack then
    mint = topUp(request, state, readBooks(state, work, due, at, batch.inDue))
  end
  dueNow, nextDue = dueTimes(due, at, batch.inDue)
  if left > 0 then
    nextDue = at
  end
  removeTraces(batch)
end

if newest >= 0 and math.floor(settledBefore / 64) < math.floor(state.settled / 64) then
  --- @include trim
  trim(request, work, generation, newest, pinned)
end
local mayRead = not late and
  -- cure: a settle without permits reads nothing
  permits > 0
local asked = mayRead and math.min(read, permits - running + (mayReadAhead(state) and ahead or 0)) or 0
local entries, cut, newestRead = readNew(work, worker, asked, largest)
if late and read > 0 then
  entries = -1
end
local cancelling = state.status == 'cancelling' and 1 or 0
local numbers = table.concat({
  digits(permits), digits(mint), digits(state.epoch), digits(dueNow), digits(nextDue), digits(cancelling),
  digits(--[[cure: a settle reads by bytes, 2]] cut), digits(shareOfUnread(state, permits, newestRead, work, due)),
  digits(isLive(followedUntil, at)), digits(state.granted),
  digits(state.status == 'open' and -1 or state.total - state.settled),
}, ' ')
return { 'ok', numbers, state.priority, entries }
