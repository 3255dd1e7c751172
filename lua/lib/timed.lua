-- A timed set is a zset `due` of keys by the time from which each may be taken: its own, or the end of its
-- lease. A lease stands from the take until it is settled or taken by another, also when its time is over:
-- 'token at ends after'. `at` is the key's own time; `after` what comes when the lease goes: '-' nothing,
-- 'gone' it was removed meanwhile, or the time to which it was moved meanwhile.

-- What is known of a key, read once: what becomes of it is decided here and written in the end, because a
-- key of Redis that became empty may not be touched again.
local function timedEntry(touched, due, leases, key)
  local entry = touched[key]
  if entry then
    return entry
  end
  entry = { key = key, due = redis.call('ZSCORE', due, key), lease = false }
  local lease = redis.call('HGET', leases, key)
  if lease then
    local token, at, ends, after = lease:match('^(%S+) (%S+) (%S+) (%S+)$')
    entry.lease = { token = token, at = at, ends = tonumber(ends), after = after }
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
        table.concat({ lease.token, lease.at, timedNumber(lease.ends), lease.after }, ' '))
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
