--- Gives sub-requests their outcome, keeps or returns permits, completes the request. The one hot
--- script: it takes everything that a worker finished for this request in one turn, and reads new ones for
--- the permits that are left without a handler.
---
--- At most 1,000 outcomes a call. First the successes, the many: the entry of each, with all their results
--- in one text, as they are recorded (lib/outcomes). Then all others, four arguments each: index, kind,
--- value, number.
---   'f' failure  value: error                       number: delayMs before the next attempt, if any is left; -1: none is to be
---   'b' back     read or started, but not finished  value, number: unused
---
--- `keep` is the number of permits that the worker means to hold, absolute, so that a call that
--- arrives twice frees nothing twice; it is never below `running`, the handlers that still run.
--- `op` numbers the enters, takes and settles of one worker process upwards, in the order of sending: of a
--- call that arrives after a later one only the successes count, and it reads nothing.
---
--- A worker that has held permits without a gap since it read what it reports still has all of it:
--- entries are taken from those without a permit only. `since` says which hold that was; if it is the
--- one that lasts, the successes are acknowledged together. Otherwise each is asked for on its own, and so
--- it is once a worker without a permit succeeded with what another one had by then, or this server lost
--- writes that a worker was told of (`contested`).
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
--   op           int|''     number of this call; '' when none of this worker can come late
--   leaseMs      int     how long the permits last from here
--   keep         int     permits to hold
--   running      int     handlers still running
--   channel      string  shard channel of the request
--   successes    int     how many there are
--   since        string     number of the hold under which they were read, from enter; '' when unsure
--   newest       int     greatest index among all outcomes; -1: there are none
--   values       string  RS, index, space, result of each success, in their order; '' when none are kept
--   read         int     sub-requests to read; never more than permits are left without a handler, nor than
--                        about a mebibyte of them
--   answered     int     number of this worker's last call for the request that was answered; 0: none
--   outcomes...  value  one for each success, then four for each other
-- REPLIES
--   {'ok', permits: int, mint: int, epoch: int, priority: text, dueNow: int, nextDue: int, cancelling: int, entries: any, cut: int}  permits is absolute · nextDue:
--      time at which it has to be looked at; 0: none · cancelling: 1 or 0 · entries: what was read, one text of
--      entry, RS, payload, RS, …, or an array of entry, payload, … where a payload holds an RS; -1: a repeat or a
--      late call, which may not say what its first reply brought
--      cut: 1 when less was read than there is because it is long
--   {'complete', outcome: outcome, spentAt: int?}  the request is complete · spentAt: for `finish`
--   {'gone'}               no such life
-- REPEAT  the same permits; nothing is counted, parked, freed or read again
-- FLAGS allow-oom

--- @include now, state, record-id, books, tokens, permits, outcomes, trim, cancel, exceeded, replace, complete, ended-early, read-some, fresh, forgotten

local request, work, due, tries, progress, failed, results =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local generation, worker, op, leaseMs, keep, running, channel, successes =
  ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]),
  ARGV[7], tonumber(ARGV[8])
local since, newest, values, read, answered =
  ARGV[9], tonumber(ARGV[10]), ARGV[11], tonumber(ARGV[12]), tonumber(ARGV[13])
local opField = 'op:' .. worker

local state = readState(request, generation)
if not state then
  return { 'gone' }
end
if state.status == 'complete' then
  return { 'complete', unpack(redis.call('HMGET', request, 'outcome', 'spentAt')) }
end
local at = state.at
local v = redis.call('HMGET', request, 'permits:' .. worker, 'results', 'attempts', 'pinned', opField,
  'since:' .. worker, 'checkpoints', 'contested', 'largest', 'kept', 'longest')
local permits, pinned, checkpoints = tonumber(v[1]) or 0, v[4], v[7]
local known = tonumber((v[5] or '0'):match('^%d+'))
local late = op and op <= known
local contested = noteForgotten(request, permits, known, answered) or v[8]
state.keepResults, state.attempts, state.kept = v[2] == 'keep', tonumber(v[3]), 0

local keys = {
  request = request, work = work, due = due, tries = tries, failed = failed, results = results, worker = worker,
  held = redis.call('ZCARD', due), unparked = {}, tried = {},
}
local reporting = redis.call('EXISTS', progress) == 1
local before, records, ended, gaveBack = state.settled, {}, {}, false
local failedBefore = state.failed
local readTo = pinned and lastRead(work)
local function reported(id, index)
  -- What is unread again will be delivered again.
  if pinned and tonumber(index) <= readTo and not redis.call('XPENDING', work, 'workers', id, id, 1)[1] then
    redis.call('XDEL', work, id)
  end
  if reporting then
    ended[#ended + 1] = index
  end
end
local prefix, others = generation .. '-', 14 + successes
for i = 14, checkpoints and others - 1 or 0 do
  keys.tried[#keys.tried + 1] = ARGV[i]:sub(#prefix + 1) .. ':checkpoint'
end
local refused
if permits > 0 and not late and since == v[6] and not contested then
  refused = succeedTogether(keys, state, 14, others - 1, pinned)
  for i = 14, reporting and others - 1 or 0 do
    ended[#ended + 1] = ARGV[i]:sub(#prefix + 1)
  end
else
  refused = {}
  for i = 14, others - 1 do
    local id = ARGV[i]
    refused[i - 13] = not succeed(keys, state, id) and '' or nil
    reported(id, id:sub(#prefix + 1))
  end
end
recordSuccesses(state, values, refused, records)
for i = others, #ARGV, 4 do
  local index, kind, value = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local id = prefix .. index
  if not late then
    if kind == 'f' then
      fail(keys, state, worker, id, index, value, tonumber(ARGV[i + 3]), at, records)
    else
      giveBack(keys, state, worker, id)
    end
    gaveBack = true
  end
  reported(id, index)
end
state.settled = state.succeeded + state.failed + state.cancelled
if keys.held > 0 and #keys.unparked > 0 then
  keys.held = keys.held - redis.call('ZREM', due, unpack(keys.unparked))
end

-- Too many failed: what nobody runs is cancelled here, but for what is parked beyond 500.
local left = 0
if state.failed > failedBefore then
  endIfExceeded(request, state)
  if state.status == 'cancelling' then
    keys.held = cancelIdle(request, state, work, due, at, keys.held)
    left = keys.held
  end
end

local freed = 0
if permits > 0 and not late then
  freed = permits
  permits = keepPermits(request, state, worker, permits, keep, running, at + leaseMs)
  freed = freed - permits
  if op then
    redis.call('HSET', request, opField, op)
  end
end
redis.call('HSET', request, 'succeeded', state.succeeded, 'failed', state.failed,
  'cancelled', state.cancelled, 'granted', state.granted, 'kept', (tonumber(v[10]) or 0) + state.kept)
if #records > 0 then
  if state.kept > (tonumber(v[11]) or 65536) then
    redis.call('HSET', request, 'longest', state.kept)
  end
  redis.call('XADD', results, recordId(state), unpack(records))
end

local spent = { kept = { failed, results }, keys = { work, due, tries, progress } }
local outcome = completeIfDone(request, state, at, channel, spent)
if outcome then
  return { 'complete', outcome, state.spentAt }
end
if newest >= 0 and math.floor(before / 64) < math.floor(state.settled / 64) then
  trim(request, work, generation, newest, pinned)
end
local mint, dueNow, nextDue = 0, 0, 0
if freed > 0 or gaveBack then
  mint = topUp(request, state, readBooks(state, work, due, at, keys.held))
end
if keys.held > 0 then
  dueNow = redis.call('ZCOUNT', due, '-inf', at)
  nextDue = redis.call('ZRANGEBYSCORE', due, '(' .. at, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2] or 0
end
if left > 0 then
  nextDue = at
end
if #ended > 0 then
  redis.call('HDEL', progress, unpack(ended))
end
if #keys.tried > 0 then
  redis.call('HDEL', tries, unpack(keys.tried))
end
local entries, cut, count = '', false, math.min(read, permits - running)
if late and read > 0 then
  entries = -1
elseif count > 0 then
  entries, cut = readSome(work, worker, count, v[9])
  entries = asText(entries)
end
local cancelling = state.status == 'cancelling' and 1 or 0
return {
  'ok', permits, mint, state.epoch, state.priority, dueNow, tonumber(nextDue), cancelling, entries, cut and 1 or 0,
}
