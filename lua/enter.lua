--- Turns tokens into permits, for one worker and several requests: of each as many as it has free slots and the limit
--- leaves. The call also reads the first sub-requests for these permits, at most about a mebibyte of each: a small request
--- is then taken in one call. `op` numbers the enters, takes and settles of one worker process upwards, in the
--- order of sending, so that a call that arrives twice or late grants nothing. The number is kept after the worker left.
--- `answered` reveals a server that lost writes (lib/forgotten).
--
-- KEYS
--   requests...  (request any, work stream, due zset)  of each: its state, its sub-requests, those delayed and returned
-- ARGV
--   worker       string  boot id of the worker process
--   leaseMs      int     how long the permits last without a settle or renew
--   tasks        string  ' name name ' of the tasks that the worker serves, or '*' for all
--   most         int     sub-requests of each that it may read here
--   ahead        int     how many it may read for each new permit beyond that, if it gets all that the limit
--                        allows and the request has no more
--   quick        int     the same, also if it does not get all that the limit allows, where a sub-request fails only
--                        by its third crash: handlers are so short that these run before another worker could enter
--   entering...  (generation int, op int, want int, awaited int, answered int, epochs string)  of each request · op: number
--                        of this call · want: free slots · awaited: how many of these are still in use, by handlers of
--                        other requests that end soon · answered: number of the worker's last call for the request that
--                        was answered; 0: none · epochs: one for each token that brought the worker here
-- REPLIES of each request, in their order
--   {'ok', numbers: numbers(permits, mint, epoch, dueNow, attempts, ends, ready, live, quick), priority: text,
--    task: text, grantNo: text, policy: text, entries: any}
--      permits is absolute · ends: when the lease ends, server time; 0: none · grantNo: number of
--      the enter with which this grant began · ready: how many nobody has read, after
--      this; -1: a repeat, which may not say what its first reply brought · policy: JSON for workers,
--      how attempts are made; '': nothing special · live: 1 while somebody follows the results; else 0 · quick: as
--      asked for; 0 where two crashes fail a sub-request · entries: as `settle` answers them; '': none
--   {'unserved', task: text, priority: text}  the request's task is not served here; park it
--   {'complete', outcome: outcome, spentAt: int?}  nothing left to do · spentAt: for `finish`
--   {'gone'}                 no such generation
-- REPEAT  'ok' with the permits that it has now, or 'unserved'; no token is counted and none granted again
-- FLAGS allow-oom

--- @include now, digits, compact

local worker, leaseMs, tasks, most, ahead, quick =
  ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), countOf(ARGV[5]), tonumber(ARGV[6])
local requests, entering = KEYS, { unpack(ARGV, 7) }
local enteredAt = now()

local function isServed(task)
  return tasks == '*' or task ~= '' and tasks:find(' ' .. task .. ' ', 1, true)
end

--- @include compact-enter

-- Enters a request that is compact, and stays so. Returns the reply; nil: it needs its full form.
local function replyOfCompact(request, generation, op, want, epochs)
  local epoch = tonumber(epochs)
  if not epoch or not isCompact(request) then
    return nil
  end
  local grant, c = enterCompact(request, generation, worker, tonumber(op), want, enteredAt, tonumber(leaseMs), isServed, most,
    ahead, quick, epoch)
  local reply = grant and {
    'ok', table.concat({ digits(grant), '0', digits(c[EPOCH]), '0', c[ATTEMPTS], digits(c[LEASE_ENDS]), '0', '0', digits(quick) }, ' '),
    c[PRIORITY], c[TASK], op, c[POLICY], entriesOfCompact(c),
  }
  return reply
end

-- Enters one request, whichever form it has.
local function replyTo(request, work, due, generation, op, want, awaited, answered, epochs)
  local compact = replyOfCompact(request, generation, op, want, epochs)
  if compact then
    return compact
  end

  --- @include state, books, tokens, read-some, read-new, share, forgotten, live

  local permitsField, leaseField, opField, grantField =
    'permits:' .. worker, 'lease:' .. worker, 'op:' .. worker, 'since:' .. worker
  local state, hasPermits, lastOp, task, attempts, policy, largest, maxCrashes, followedUntil =
    readState(request, work, generation, permitsField, opField, 'task', 'attempts', 'policy', 'largest', 'maxCrashes',
      'followedUntil')
  if not state then
    return { 'gone' }
  end
  if state.status == 'complete' then
    -- cure: every reply on a completion says what to unlink, of enter
    return { 'complete', endOf(request, work) }
  end
  local at = state.at
  local books = readBooks(state, work, due, at)
  local permits, ends, grantNo, quickHere = countOf(hasPermits) or 0, 0, '', quick
  if permits > 0 then
    -- Who has no permits has no lease and no grant.
    local lease = redis.call('HMGET', request, leaseField, grantField)
    ends, grantNo = tonumber(lease[1]) or 0, lease[2] or ''
  end
  local mint, ready, entries = 0, -1, ''
  local unserved = not isServed(task)

  local known = lastOp and tonumber(lastOp:match('^%d+')) or 0
  noteForgotten(request, permits, known, answered)
  -- cure: op number in enter
  if tonumber(op) > known then
    -- Tokens of before the last two epochs were given up, as when the priority changed: they die here.
    local stale = epochs ~= ''
    for epoch in epochs:gmatch('%d+') do
      local counted = countOf(epoch)
      stale = stale and counted < state.epoch - 1
      if counted == state.epoch and state.out > 0 then
        state.out = state.out - 1
      elseif counted == state.epoch - 1 and state.outBefore > 0 then
        state.outBefore = state.outBefore - 1
      end
    end
    if unserved then
      redis.call('HSET', request, 'out', state.out, 'outBefore', state.outBefore, opField, op, 'parked', 1)
      return { 'unserved', task, state.priority }
    end
    if state.parked then
      redis.call('HDEL', request, 'parked')
      state.parked = false
    end
    local grant =
      -- cure: tokens of an old priority die, 3
      stale and 0 or math.max(0, math.min(want, wanted(state, books) - state.granted))
    state.granted = state.granted + grant
    if permits == 0 then
      grantNo = op
    end
    permits = permits + grant
    if permits > 0 then
      ends = at + leaseMs
      redis.call('HSET', request, 'out', digits(state.out), 'outBefore', digits(state.outBefore), opField, op,
        'granted', digits(state.granted), permitsField, digits(permits), leaseField, digits(ends), 'term:' .. worker,
        leaseMs, grantField, grantNo)
    else
      redis.call('HSET', request, 'out', state.out, 'outBefore', state.outBefore, opField, op)
    end
    state.maxCrashes = tonumber(maxCrashes) or 3
    -- Until a slot is free, what is read here for it is read ahead. While one worker has all that the limit allows, no
    -- other could run what it reads ahead; if its handlers are short, no other would be sooner. It does so only to the end
    -- of the request: of a longer one it reads ahead when it has settled something, by its share.
    if
      -- cure: with few crashes allowed only one worker reads ahead
      state.maxCrashes < 3 then
      quickHere = 0
    end
    local spare = grant * math.max(ahead, quickHere)
    if
      -- cure: an enter reads ahead only under the whole limit
      permits < state.limit then
      spare = grant * quickHere
    end
    if
      -- cure: an enter reads ahead only to the end
      books.unread > math.min(grant + spare, most) then
      spare = 0
    end
    local count = math.min(mayReadAhead(state) and grant + spare or grant - awaited, books.unread, most)
    if count > 0 and books.dueNow == 0 then
      local found
      entries, found = readNew(work, worker, count, largest)
      books.unread, books.ready, books.inFlight = books.unread - found, books.ready - found, books.inFlight + found
    end
    ready = books.ready
    mint = topUp(request, state, books)
  elseif unserved then
    return { 'unserved', task, state.priority }
  end
  local numbers = table.concat({
    digits(permits), digits(mint), digits(state.epoch), digits(books.dueNow), attempts or '1', digits(ends), digits(ready),
    digits(isLive(followedUntil, at)), digits(quickHere),
  }, ' ')
  return { 'ok', numbers, state.priority, task, grantNo, policy or '', entries }
end

local replies = {}
for i = 1, #entering / 6 do
  local generation, op, want, awaited, answered, epochs = unpack(entering, 6 * i - 5, 6 * i)
  replies[i] = replyTo(requests[3 * i - 2], requests[3 * i - 1], requests[3 * i], generation, op, countOf(want), countOf(awaited),
    countOf(answered), epochs)
end
return replies
