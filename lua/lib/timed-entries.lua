--- @needs timed-times
-- A timed set is a zset `due` of keys by the time from which each may be taken: its own time, or the end of its lease.
-- A lease lasts from the take until the key is settled or taken by another, also beyond its end: 'token at ends after'.
-- `at` is the key's own time. `ends` is a time whose fraction says how long the lease is, in ms. `after` says what
-- follows when the lease goes: '-' nothing, 'gone' the key was removed meanwhile, or the time to which it was moved.

-- What is known of a key, read once. What becomes of it is decided first and written at the end (`timedFlush`), because a
-- key of Redis that became empty must not be touched again. A lease that ends later than a new one would was
-- written before the clock went back. `score`: of the key, if it was just read.
local function timedEntry(touched, due, leases, key, at, score)
  local entry = touched[key]
  if entry then
    return entry
  end
  score = score or redis.call('ZSCORE', due, key)
  entry = { key = key, due = score and timedBelieved(tonumber(score), at), lease = false, wasDue = score }
  local lease = redis.call('HGET', leases, key)
  if lease then
    local token, own, ends, ms, after = lease:match('^(%S+) (%S+) (%d+)%.?(%d*) (%S+)$')
    -- An older release wrote no length.
    ms, ends = tonumber(ms), tonumber(ends)
    local moved = tonumber(after)
    local comes, over = moved and
      -- cure: a move beside the lease is believed for its length
      timedBelieved(moved, at), ms and math.min(ends, at + ms) or ends
    entry.lease = { token = token, at = own, ends = over, ms = ms, after = moved and timedText(comes) or after }
    if over < ends or comes ~= moved then
      entry.due = math.max(comes or 0, over)
    end
  end
  entry.hadLease = entry.lease and true
  touched[key] = entry
  touched[#touched + 1] = entry
  return entry
end

local function timedEnds(lease)
  return timedNumber(lease.ends) .. (lease.ms and ('.%010d'):format(lease.ms) or '')
end

-- Ends the lease of a key. The key becomes due at the time to which it was moved meanwhile, else at `time`; false: it is
-- removed.
local function timedFree(entry, time)
  local after = entry.lease and entry.lease.after or '-'
  entry.lease = false
  if after == '-' then
    entry.due = time
  else
    entry.due = after ~= 'gone' and after
  end
end

-- Writes what was decided; deletes last. Notifies those who wait when a key is due before all that were there.
-- `clock` keeps, to the second, when a length was last given: a take that reads an earlier time knows that the clock went
-- back.
local function timedFlush(touched, keys, channel, at)
  local first = tonumber(redis.call('ZRANGE', keys.due, 0, 0, 'WITHSCORES')[2])
  local over, free, sooner, lengths, gone = {}, {}, false, false, 0
  for _, entry in ipairs(touched) do
    if entry.due then
      local time = tonumber(entry.due)
      redis.call('ZADD', keys.due, timedText(time), entry.key)
      lengths = lengths or time % 1 > 0
      if (not first or time < first) and (not sooner or time < sooner) then
        sooner = time
      end
    else
      over[#over + 1] = entry.key
      gone = gone + (entry.wasDue and 1 or 0)
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
  if lengths and at >= (tonumber(redis.call('HGET', keys.clock, 'at')) or 0) + 1000 then
    -- cure: a delay given as a length records the clock
    redis.call('HSET', keys.clock, 'at', timedNumber(at))
  end
  if sooner then
    redis.pcall('SPUBLISH', channel, timedNumber(math.floor(sooner)))
  end
  if #free > 0 then
    redis.call('HDEL', keys.leases, unpack(free))
  end
  if #over > 0 then
    if gone == redis.call('ZCARD', keys.due) then
      redis.call('HDEL', keys.clock, 'at', 'from')
    end
    redis.call('HDEL', keys.tasks, unpack(over))
    redis.call('ZREM', keys.due, unpack(over))
  end
end
