-- A timed set is a zset `due` of keys by the time from which each may be taken: its own, or the end of its
-- lease. A lease stands from the take until it is settled or taken by another, also when its time is over:
-- 'token at ends after'. `at` is the key's own time; `ends` a time and, as its fraction, for how many ms it was
-- meant; `after` what comes when the lease goes: '-' nothing, 'gone' it was removed meanwhile, or the time to which
-- it was moved meanwhile.

-- What is known of a key, read once: what becomes of it is decided here and written in the end, because a
-- key of Redis that became empty may not be touched again.
-- A lease that ends later than it was meant to from now on is of a clock that went back since.
local function timedEntry(touched, due, leases, key, at)
  local entry = touched[key]
  if entry then
    return entry
  end
  entry = { key = key, due = redis.call('ZSCORE', due, key), lease = false }
  local lease = redis.call('HGET', leases, key)
  if lease then
    local token, own, ends, ms, after = lease:match('^(%S+) (%S+) (%d+)%.?(%d*) (%S+)$')
    -- An older release wrote none.
    ms = tonumber(ms)
    entry.lease = { token = token, at = own, ends = tonumber(ends), ms = ms, after = after }
    if ms and entry.lease.ends > at + ms then
      entry.lease.ends = at + ms
      entry.due = math.max(tonumber(after) or 0, entry.lease.ends)
    end
  end
  entry.hadLease = entry.lease and true
  touched[key] = entry
  touched[#touched + 1] = entry
  return entry
end

-- Whole numbers of up to 16 digits as text, which tostring would shorten.
local function timedNumber(number)
  return string.format('%.0f', number)
end

local function timedEnds(lease)
  return timedNumber(lease.ends) .. (lease.ms and ('.%010d'):format(lease.ms) or '')
end

-- The server time that is meant: one as it is, or '+ms' from here on.
local function timedAt(time, at)
  local delayMs = time:match('^%+(%d+)$')
  return delayMs and at + tonumber(delayMs) or tonumber(time)
end

-- Its lease goes: the key comes at the time to which it was moved meanwhile, else at `time`; false: it is over.
local function timedFree(entry, time)
  local after = entry.lease and entry.lease.after or '-'
  entry.lease = false
  if after == '-' then
    entry.due = time
  else
    entry.due = after ~= 'gone' and after
  end
end

-- Writes what was decided; deletes last. When a key comes before all that were there, those who wait are told.
local function timedFlush(touched, keys, channel)
  local first = tonumber(redis.call('ZRANGE', keys.due, 0, 0, 'WITHSCORES')[2])
  local over, free, sooner = {}, {}, false
  for _, entry in ipairs(touched) do
    if entry.due then
      local time = tonumber(entry.due)
      redis.call('ZADD', keys.due, timedNumber(time), entry.key)
      if (not first or time < first) and (not sooner or time < sooner) then
        sooner = time
      end
    else
      over[#over + 1] = entry.key
    end
    if entry.task then
      redis.call('HSET', keys.tasks, entry.key, entry.task)
    end
    if entry.lease then
      local lease = entry.lease
      redis.call('HSET', keys.leases, entry.key,
        table.concat({ lease.token, lease.at, timedEnds(lease), lease.after }, ' '))
    elseif entry.hadLease then
      free[#free + 1] = entry.key
    end
  end
  if sooner then
    redis.pcall('SPUBLISH', channel, timedNumber(sooner))
  end
  if #free > 0 then
    redis.call('HDEL', keys.leases, unpack(free))
  end
  if #over > 0 then
    redis.call('HDEL', keys.tasks, unpack(over))
    redis.call('ZREM', keys.due, unpack(over))
  end
end

-- Leases of dead takers end in time also when the clock went back: a few of all are looked at by each take.
local function timedClockBack(touched, due, leases, at)
  -- A user of an older release's rights may not, and does without.
  local some = redis.pcall('HRANDFIELD', leases, 20, 'WITHVALUES')
  for i = 1, #some, 2 do
    local ends, ms = some[i + 1]:match('^%S+ %S+ (%d+)%.(%d+) ')
    if ends and tonumber(ends) > at + ms then
      timedEntry(touched, due, leases, some[i], at)
    end
  end
  timedFlush(touched, { due = due, leases = leases }, '')
end
