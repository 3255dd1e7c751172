--- Turns tokens into permits: up to as many as the worker has free slots and the limit leaves. Where
--- they are as good as all that is ready, and few, it reads for them too: a small request is then
--- taken in one call, as far as it is no more than about a mebibyte.
--- `op` numbers the enters, takes and settles of one worker process upwards, in the order of sending, so
--- that a call that arrives twice or late grants nothing; the number outlives the leave. `answered` tells
--- a server that lost writes (lib/forgotten).
--
-- KEYS
--   request   hash    state of the request
--   work      stream  its sub-requests
--   due       zset    delayed and returned sub-requests
-- ARGV
--   generation  int     of the request
--   worker      string  boot id of the worker process
--   op          int     number of this call
--   want        int     free slots
--   leaseMs     int     how long the permits last without a settle or renew
--   tasks       string  ' name name ' of the tasks that the worker serves, or '*' for all
--   most        int     sub-requests that it may read here
--   answered    int     number of its last call for this request that was answered; 0: none
--   epochs...   string     one for each token that brought the worker here
-- REPLIES
--   {'ok', permits: int, mint: int, epoch: int, priority: text, dueNow: int, task: text, attempts: int, ends: int,
--    since: text, ready: int, policy: text, entries...: (entry text, payload text)}
--      permits is absolute · ends: when the lease is over, server time; 0: none · since: number of
--      the enter with which this hold began · ready: what nobody has read, after
--      this; -1: a repeat, which may not say what its first reply brought · policy: JSON for workers,
--      how attempts are made; '': nothing special
--   {'unserved', task: text, priority: text}  the request's task is not served here; park it
--   {'complete', outcome: outcome, spentAt: int?}  nothing left to do · spentAt: for `finish`
--   {'gone'}                 no such life
-- REPEAT  'ok' with the permits held now, or 'unserved'; no token is counted and none granted again
-- FLAGS allow-oom

--- @include now, state, books, tokens, read-some, forgotten

local request, work, due = KEYS[1], KEYS[2], KEYS[3]
local generation, worker, op, want, leaseMs, tasks =
  ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6]
local most, answered = tonumber(ARGV[7]), tonumber(ARGV[8])
local permitsField, leaseField, opField = 'permits:' .. worker, 'lease:' .. worker, 'op:' .. worker
local sinceField = 'since:' .. worker

local state = readState(request, generation)
if not state then
  return { 'gone' }
end
if state.status == 'complete' then
  return { 'complete', unpack(redis.call('HMGET', request, 'outcome', 'spentAt')) }
end
local at = state.at
local books = readBooks(state, work, due, at)
local v = redis.call('HMGET', request, permitsField, opField, 'task', 'attempts', leaseField,
  sinceField, 'policy', 'largest')
local permits, task, attempts, ends = tonumber(v[1]) or 0, v[3], tonumber(v[4]), tonumber(v[5]) or 0
local since, ready, policy, entries = v[6] or '', -1, v[7] or '', {}
local mint = 0
local unserved = tasks ~= '*' and not (task ~= '' and tasks:find(' ' .. task .. ' ', 1, true))

local known = tonumber((v[2] or '0'):match('^%d+'))
noteForgotten(request, permits, known, answered)
if op > known then
  -- Tokens of before the last two epochs were given up, as when the priority changed: they die here.
  local stale = #ARGV >= 9
  for i = 9, #ARGV do
    local counted = tonumber(ARGV[i])
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
  local grant = stale and 0 or math.max(0, math.min(want, wanted(state, books) - state.granted))
  state.granted = state.granted + grant
  if permits == 0 then
    since = op
  end
  permits = permits + grant
  redis.call('HSET', request, 'out', state.out, 'outBefore', state.outBefore, opField, op)
  if permits > 0 then
    ends = at + leaseMs
    redis.call('HSET', request, 'granted', state.granted, permitsField, permits,
      leaseField, ends, 'term:' .. worker, leaseMs, sinceField, since)
  end
  local count = math.min(grant, books.unread)
  if count > 0 and count <= most and books.dueNow == 0 then
    for _, entry in ipairs((readSome(work, worker, count, v[8]))) do
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
return {
  'ok', permits, mint, state.epoch, state.priority, books.dueNow, task, attempts, ends, since, ready,
  policy, unpack(entries),
}
