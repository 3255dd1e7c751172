--- Takes what is due in a timed set, at most `count`, in due order, under a lease that ends by itself; no more than
--- about a mebibyte, in which a key counts three times and 2,500 more, but one in any case.
--- `number` counts the takes of one taker upwards, one at a time: a take that arrives twice gets the same keys, and one
--- that arrives late takes nothing. If the queue has a condition, the text of that function replaces the `nil` of
--- `granting`: it answers how many keys may be taken now.
--
-- KEYS
--   due               zset  key -> server time from which it may be taken
--   tasks             hash  key -> 'created failures payload'
--   leases            hash  key -> 'token at ends.ms after'
--   clock             hash  when a length was last given; how far the times ahead have been gone through
--   taker             hash  what this taker was answered last; goes by itself
--   conditionKeys...  any   keys of the condition
-- ARGV
--   name        string  of the taker, without spaces
--   number      int     of this call
--   count       int     at most so many
--   leaseMs     int     how long the lease lasts
--   rememberMs  int     how long the taker is remembered beyond the lease
-- REPLIES
--   {'taken', now: int, next: int, ends: int, keys...: (key text, task text, at int)}
--      next: server time at which to ask again, unless a notice comes earlier; -1: never
--      ends: when the lease ends · task: '' of a key without a payload · at: the key's own time
--   {'refused', message: text}  the condition failed, or answered something senseless; nothing is taken
--   {'late', number: int}      a take of this number was answered already; nothing is taken
-- REPEAT  the same keys, those whose lease is still this one; if none is, it takes anew
-- FLAGS allow-oom

--- @include now, timed-times, timed-entries, timed-clock, timed-due

local granting = nil
local due, tasks, leases, clock, taker, conditionKeys =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], { unpack(KEYS, 6) }
local name, number, count, leaseMs, rememberMs =
  ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])

local at, touched, token = now(), {}, name .. '~' .. number
local keys = { due = due, tasks = tasks, leases = leases, clock = clock }
local lastTake, lastKeys = unpack(redis.call('HMGET', taker, 'take', 'keys'))
local last = tonumber(lastTake) or 0
-- cure: the number of a take, 2
if number < last then
  return { 'late', last }
end

local function nextTime(from)
  return tonumber(redis.call('ZRANGE', due, from, '+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')[2]) or -1
end

-- The reply with these entries.
local function answered(entries, nextCheck)
  local reply = { 'taken', at, nextCheck, 0 }
  for _, entry in ipairs(entries) do
    reply[4] = entry.lease.ends
    reply[#reply + 1] = entry.key
    reply[#reply + 1] = entry.payload or redis.call('HGET', tasks, entry.key) or ''
    reply[#reply + 1] = timedNumber(math.floor(tonumber(entry.lease.at)))
  end
  return reply
end

-- Of the keys that the take of this number got before, those whose lease is still its own.
local function stillTaken()
  local same = {}
  for _, key in ipairs(cjson.decode(lastKeys)) do
    local entry = timedEntry(touched, due, leases, key, at)
    -- cure: a lease that ended is no answer
    if entry.lease and entry.lease.token == token and entry.lease.ends > at then
      same[#same + 1] = entry
    end
  end
  return same
end

-- Asks the condition how many of `some` keys may be taken, and when to ask again if they are fewer. A third result says
-- why its answer cannot be used.
local function askCondition(some)
  local ok, answer, again = pcall(granting, conditionKeys, at, some)
  if not ok then
    return 0, nil, type(answer) == 'table' and answer.err or tostring(answer)
  end
  local sound = type(answer) == 'number' and answer >= 0
    and (again == nil or (type(again) == 'number' and again >= 0 and again < 1e12))
  if not sound then
    return 0, nil, 'it answered ' .. tostring(answer) .. ', ' .. tostring(again)
  end
  local grant = math.min(some, math.floor(answer))
  return grant, grant < some and math.ceil(again or 1000)
end

-- cure: the number of a take
if number == last then
  local same = stillTaken()
  if #same > 0 then
    return answered(same, nextTime('-inf'))
  end
end
-- cure: a lease, the clock back
local more = timedClockBack({}, keys, at)
local found, bytes = timedDue(touched, keys, at, count)
local grant, againMs, senseless = #found, nil, nil
if granting and grant > 0 then
  grant, againMs, senseless = askCondition(#found)
  if senseless then
    return { 'refused', senseless }
  end
end
local taken, names = timedLease(touched, found, grant, token, at, leaseMs)
local nextCheck = at
if againMs then
  nextCheck = at + againMs
elseif #found < count and
  -- cure: a scan of times that lie ahead continues page by page
  not more and
  -- cure: a take of a timed set is bounded by bytes, 2
  bytes < 1048576 then
  nextCheck = nextTime(at + 1)
end
local reply = answered(taken, nextCheck)
if grant > 0 then
  if againMs == nil and nextCheck ~= at and (nextCheck < 0 or nextCheck > at + leaseMs) then
    reply[3] = at + leaseMs
  end
  redis.call('HSET', taker, 'take', number, 'keys', cjson.encode(names))
  redis.call('PEXPIRE', taker, leaseMs + rememberMs)
end
timedFlush(touched, keys, '', at)
return reply
