--- Takes what is due in a timed set, at most `count`, in due order, under a lease that ends by itself; no more than
--- about a mebibyte, in which a key counts three times and 2,500 more, but one in any case.
--- `number` counts the takes of one taker upwards, one at a time: one that arrives twice is answered the
--- same keys, one that arrives late takes nothing. A condition, if the queue has one, is a function whose
--- text stands in place of `granting`: it says how many may be taken now.
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
--      next: server time at which to ask again, if not told otherwise before; -1: never
--      ends: when the lease is over · task: '' of a key without a payload · at: the key's own time
--   {'refused', message: text}  the condition failed, or answered something senseless; nothing is taken
--   {'late', number: int}      a take of this number was answered already; nothing is taken
-- REPEAT  the same keys, those whose lease is still this one; if none is, it takes anew
-- FLAGS allow-oom

--- @include now, timed

local granting = nil
local due, tasks, leases, clock, taker, conditionKeys =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], { unpack(KEYS, 6) }
local name, number, count, leaseMs, rememberMs =
  ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])

local at, touched, token = now(), {}, name .. '~' .. number
local keys = { due = due, tasks = tasks, leases = leases, clock = clock }
local v = redis.call('HMGET', taker, 'take', 'keys')
local last = tonumber(v[1]) or 0
if number < last then
  return { 'late', last }
end

local function nextTime(from)
  return tonumber(redis.call('ZRANGE', due, from, '+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')[2]) or -1
end

local function answered(entries, nextLook)
  local reply = { 'taken', at, nextLook, 0 }
  for _, entry in ipairs(entries) do
    reply[4] = entry.lease.ends
    reply[#reply + 1] = entry.key
    reply[#reply + 1] = entry.payload or redis.call('HGET', tasks, entry.key) or ''
    reply[#reply + 1] = timedNumber(math.floor(tonumber(entry.lease.at)))
  end
  return reply
end

if number == last then
  local same = {}
  for _, key in ipairs(cjson.decode(v[2])) do
    local entry = timedEntry(touched, due, leases, key, at)
    if entry.lease and entry.lease.token == token and entry.lease.ends > at then
      same[#same + 1] = entry
    end
  end
  if #same > 0 then
    return answered(same, nextTime('-inf'))
  end
end

local more = timedClockBack({}, keys, at)

-- What was removed while it was taken is over with its lease. A payload is read once; a key is written several times as
-- well, and each has its own price.
local found, read, bytes, longest, ends = {}, 0, 0, 1, false
repeat
  local size = timedPage(math.min(read == 0 and 1 or 8, count - #found), longest)
  local page = redis.call('ZRANGE', due, read, read + size - 1, 'WITHSCORES')
  read = read + size
  for i = 1, #page, 2 do
    local key, score = page[i], page[i + 1]
    ends = tonumber(score) >= at + 1
    if ends or bytes >= 1048576 then
      break
    end
    local entry = timedEntry(touched, due, leases, key, at, score)
    longest = math.max(longest, #key)
    if entry.lease and entry.lease.after == 'gone' then
      timedFree(entry)
    else
      found[#found + 1] = entry
      entry.payload = redis.call('HGET', tasks, key) or ''
      bytes = bytes + #entry.payload
    end
    bytes = bytes + 2500 + 3 * #key
  end
  ends = ends or #page < 2 * size
until ends or #found == count or bytes >= 1048576

local grant, againMs = #found, nil
if granting and grant > 0 then
  local ok, answer, again = pcall(granting, conditionKeys, at, #found)
  if not ok then
    return { 'refused', type(answer) == 'table' and answer.err or tostring(answer) }
  end
  local sound = type(answer) == 'number' and answer >= 0
    and (again == nil or (type(again) == 'number' and again >= 0 and again < 1e12))
  if not sound then
    return { 'refused', 'it answered ' .. tostring(answer) .. ', ' .. tostring(again) }
  end
  grant = math.min(#found, math.floor(answer))
  againMs = grant < #found and math.ceil(again or 1000)
end

local taken, names = {}, {}
for i = 1, grant do
  local entry = found[i]
  local own, after = entry.due, entry.lease and entry.lease.after
  if after then
    own = after == '-' and entry.lease.at or after
  end
  entry.lease = { token = token, at = timedText(own), ends = at + leaseMs, ms = leaseMs, after = '-' }
  entry.due = entry.lease.ends
  taken[i], names[i] = entry, entry.key
end
-- Of those that are due and not granted nothing changes.
for i = #touched, 1, -1 do
  local entry = touched[i]
  if entry.due and not (entry.lease and entry.lease.token == token) then
    table.remove(touched, i)
  end
end
local nextLook = at
if againMs then
  nextLook = at + againMs
elseif #found < count and not more and bytes < 1048576 then
  nextLook = nextTime(at + 1)
end
local given = answered(taken, nextLook)
if grant > 0 then
  if againMs == nil and nextLook ~= at and (nextLook < 0 or nextLook > at + leaseMs) then
    given[3] = at + leaseMs
  end
  redis.call('HSET', taker, 'take', number, 'keys', cjson.encode(names))
  redis.call('PEXPIRE', taker, leaseMs + rememberMs)
end
timedFlush(touched, keys, '', at)
return given
