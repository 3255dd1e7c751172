--- Settles what a worker finished, of several requests: of each it counts the outcomes, keeps or returns permits, reads
--- new sub-requests for the permits that are left, and completes the request after its last outcome. The hot script.
---
--- At most 1,000 outcomes a request. The successes come first: the entry of each, and all their results in one text,
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
--   requests...  (request any, work stream, due zset, tries hash, progress hash, failed hash, results stream)  of each
--                  request: its state · its sub-requests · those delayed and returned · index -> failed attempts,
--                  'index:crashes' -> crashes, 'index:alone' -> worker · index -> what its handler last reported ·
--                  index -> error, 'index:payload' -> payload · outcomes in the order of settling: ok, results or
--                  !index, attempts
-- ARGV
--   worker       string  boot id of the worker process
--   leaseMs      int     how long the permits last from here
--   settling...  (generation int, op int|'', keep int, running int, channel string, successes int, grantNo string, newest int, values value, costs string, read int, ahead int, answered int, outcomes values)  of each request
--                  op: number of this call; '' when none of this worker can come late · keep: permits to keep · running:
--                  handlers still running · channel: its shard channel · successes: how many there are · grantNo: number
--                  of the grant under which they were read, from enter; '' when unsure · newest: greatest index among all
--                  outcomes; -1: there are none · values: RS, index, space, result of each success, in their order; ''
--                  when none are kept · costs: of each outcome, in their order, as a JSON array (lib/cost) · read:
--                  sub-requests to read; never more than permits are left without a handler and `ahead`, nor more than
--                  about a mebibyte of them; without a permit none are read · ahead: how many of these may have no permit:
--                  the worker starts each when a handler has ended · answered: number of this worker's last call for the
--                  request that was answered; 0: none · outcomes: one for each success, then four for each other
-- REPLIES of each request, in their order
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

--- @include now, digits, compact, record-id, cost, failed, exceeded, replace, notice, complete, compact-settle

local requests, worker, leaseMs, settling = KEYS, ARGV[1], tonumber(ARGV[2]), ARGV
local opField, permitsField = 'op:' .. worker, 'permits:' .. worker
local at = now()

-- Settles what is named for one request, whose keys follow the first `k`, and what is named of it the first `i` arguments:
-- 13 values, the number of its outcomes, and these, from `first` to `last`. Returns the reply.
local function replyTo(k, i, first, last)
  local request, failed, results = requests[k + 1], requests[k + 6], requests[k + 7]
  local generation, channel, grantNo, values = settling[i + 1], settling[i + 5], settling[i + 7], settling[i + 9]
  local successes, costs = countOf(settling[i + 6]), cjson.decode(settling[i + 10])
  if isCompact(request) then
    local outcome = settleCompact(request, failed, generation, worker, successes, values, costs, channel, at, first,
      last)
    if outcome then
      return { 'complete', outcome }
    end
  end
  local work, due, tries, progress = requests[k + 2], requests[k + 3], requests[k + 4], requests[k + 5]
  local op, keep, running = tonumber(settling[i + 2]), countOf(settling[i + 3]), countOf(settling[i + 4])
  local newest = countOf(settling[i + 8])
  local read, ahead, answered = countOf(settling[i + 11]), countOf(settling[i + 12]), countOf(settling[i + 13])

  --- @include state, forgotten, last-read, books, share, read-some, read-new, usual, live

  local firstOther = first + successes
  local state, hasPermits, lastOp, presentGrant, keepsResults, pinned, checkpoints, contested, largest, kept, maxCrashes,
    followedUntil, cost =
    readState(request, work, generation, permitsField, opField, 'since:' .. worker, 'results', 'pinned', 'checkpoints',
      'contested', 'largest', 'kept', 'maxCrashes', 'followedUntil', 'cost')
  if not state then
    return { 'gone' }
  end
  if state.status == 'complete' then
    return { 'complete', endOf(request, work) }
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
    acknowledged = acknowledge(work, first, firstOther - 1)
    state.succeeded = state.succeeded + --[[cure: XACK-gated counting, all together]] acknowledged
    state.settled = state.settled + acknowledged
  end

  local mint, dueNow, nextDue = 0, 0, 0
  local onlySuccesses = op and
    -- cure: successes that are not acknowledged are looked into
    acknowledged == successes and
    -- cure: failures and returns are not usual
    firstOther > last and
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
    settleSuccesses(batch, state, first, firstOther - 1, values, costs, acknowledged)
    local gaveBack = settleOthers(batch, state, firstOther, last, costs, successes, late)
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
  local entries, _, cut, newestRead = readNew(work, worker, asked, largest)
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
end

local replies, i = {}, 2
while i < #settling do
  local k, last = 7 * #replies, i + 14 + settling[i + 14]
  replies[#replies + 1] = replyTo(k, i, i + 15, last)
  i = last
end
return replies
