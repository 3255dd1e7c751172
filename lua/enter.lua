--- Turns tokens into permits: as many as the worker has free slots and the limit leaves. The call also reads the first
--- sub-requests for these permits, at most about a mebibyte: a small request is then taken in one call. `op` numbers
--- the enters, takes and settles of one worker process upwards, in the order of sending, so that a call that arrives
--- twice or late grants nothing. The number is kept after the worker left. `answered` reveals a server that lost
--- writes (lib/forgotten).
--
-- KEYS
--   request  hash    state of the request
--   work     stream  its sub-requests
--   due      zset    delayed and returned sub-requests
-- ARGV
--   generation  int     of the request
--   worker      string  boot id of the worker process
--   op          int     number of this call
--   want        int     free slots
--   leaseMs     int     how long the permits last without a settle or renew
--   tasks       string  ' name name ' of the tasks that the worker serves, or '*' for all
--   most        int     sub-requests that it may read here
--   awaited     int     how many of the free slots are still in use, by handlers of other requests that end soon
--   answered    int     number of its last call for this request that was answered; 0: none
--   ahead       int     how many it may read for each new permit beyond that, if it gets all that the limit
--                       allows and the request has no more
--   quick       int     the same, also if it does not get all that the limit allows, where a sub-request fails only
--                       by its third crash: handlers are so short that these run before another worker could enter
--   epochs...   string  one for each token that brought the worker here
-- REPLIES
--   {'ok', numbers: numbers(permits, mint, epoch, dueNow, attempts, ends, ready, live, quick, compact), priority: text,
--    task: text, grantNo: text, policy: text, entries...: (entry text, payload text)}
--      permits is absolute · ends: when the lease ends, server time; 0: none · grantNo: number of
--      the enter with which this grant began · ready: how many nobody has read, after
--      this; -1: a repeat, which may not say what its first reply brought · policy: JSON for workers,
--      how attempts are made; '': nothing special · live: 1 while somebody follows the results; else 0 · quick: as
--      asked for; 0 where two crashes fail a sub-request · compact: 1 where `settle-compact` may settle all that it read;
--      else 0
--   {'unserved', task: text, priority: text}  the request's task is not served here; park it
--   {'complete', outcome: outcome, spentAt: int?}  nothing left to do · spentAt: for `finish`
--   {'gone'}                 no such generation
-- REPEAT  'ok' with the permits that it has now, or 'unserved'; no token is counted and none granted again
-- FLAGS allow-oom

--- @include now, digits, compact

local request, work, due = KEYS[1], KEYS[2], KEYS[3]
local generation, worker, op, want, leaseMs, tasks =
  ARGV[1], ARGV[2], ARGV[3], countOf(ARGV[4]), ARGV[5], ARGV[6]
local most, awaited, answered, ahead, quick =
  tonumber(ARGV[7]), countOf(ARGV[8]), countOf(ARGV[9]), countOf(ARGV[10]), tonumber(ARGV[11])
local epochs = { unpack(ARGV, 12) }

if isCompact(request) and #epochs == 1 then
  --- @include compact-enter
  local number, ends = tonumber(op), now() + leaseMs
  local grant, c = enterCompact(request, generation, worker, number, want, ends, tonumber(leaseMs), tasks, most, ahead,
    quick, tonumber(epochs[1]))
  if grant then
    local reply = {
      'ok', table.concat({ digits(grant), '0', digits(c[5]), '0', c[14], digits(ends), '0', '0', digits(quick), '1' }, ' '),
      c[11], c[13], op, c[15],
    }
    for i, payload in ipairs(payloadsOf(c)) do
      reply[5 + 2 * i], reply[6 + 2 * i] = generation .. '-' .. i - 1, payload
    end
    return reply
  end
end

--- @include state, books, tokens, read-some, share, forgotten, live

local permitsField, leaseField, opField = 'permits:' .. worker, 'lease:' .. worker, 'op:' .. worker
local grantField = 'since:' .. worker

local state, hasPermits, lastOp, task, attempts, policy, largest, maxCrashes, followedUntil =
  readState(request, work, generation, permitsField, opField, 'task', 'attempts', 'policy', 'largest', 'maxCrashes',
    'followedUntil')
if not state then
  return { 'gone' }
end
if state.status == 'complete' then
  -- cure: every reply on a completion says what to unlink, of enter
  return { 'complete', unpack(redis.call('HMGET', request, 'outcome', 'spentAt')) }
end
local at = state.at
local books = readBooks(state, work, due, at)
local permits, ends, grantNo = countOf(hasPermits) or 0, 0, ''
if permits > 0 then
  -- Who has no permits has no lease and no grant.
  local lease = redis.call('HMGET', request, leaseField, grantField)
  ends, grantNo = tonumber(lease[1]) or 0, lease[2] or ''
end
local mint, ready, entries = 0, -1, {}
local unserved = tasks ~= '*' and not (task ~= '' and tasks:find(' ' .. task .. ' ', 1, true))

local known = lastOp and tonumber(lastOp:match('^%d+')) or 0
noteForgotten(request, permits, known, answered)
-- cure: op number in enter
if tonumber(op) > known then
  -- Tokens of before the last two epochs were given up, as when the priority changed: they die here.
  local stale = #epochs > 0
  for _, epoch in ipairs(epochs) do
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
    quick = 0
  end
  local spare = grant * math.max(ahead, quick)
  if
    -- cure: an enter reads ahead only under the whole limit
    permits < state.limit then
    spare = grant * quick
  end
  if
    -- cure: an enter reads ahead only to the end
    books.unread > math.min(grant + spare, most) then
    spare = 0
  end
  local count = math.min(mayReadAhead(state) and grant + spare or grant - awaited, books.unread, most)
  if count > 0 and books.dueNow == 0 then
    for _, entry in ipairs((readSome(work, worker, count, largest))) do
      entries[#entries + 1] = entry[1]
      entries[#entries + 1] = entry[2][2]
    end
    books.unread = books.unread - #entries / 2
    books.ready = books.ready - #entries / 2
    books.inFlight = books.inFlight + #entries / 2
  end
  ready = books.ready
  mint = topUp(request, state, books)
elseif unserved then
  return { 'unserved', task, state.priority }
end
local numbers = table.concat({
  digits(permits), digits(mint), digits(state.epoch), digits(books.dueNow), attempts or '1', digits(ends), digits(ready),
  digits(isLive(followedUntil, at)), digits(quick), '0',
}, ' ')
return { 'ok', numbers, state.priority, task, grantNo, policy or '', unpack(entries) }
