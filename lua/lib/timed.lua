-- A timed set is a zset `due` of keys by the time from which each may be taken: its own, or the end of its
-- lease. A lease stands from the take until it is settled or taken by another, also when its time is over:
-- 'token at ends after'. `at` is the key's own time; `ends` a time and, as its fraction, for how many ms it was
-- meant; `after` what comes when the lease goes: '-' nothing, 'gone' it was removed meanwhile, or the time to which
-- it was moved meanwhile.
-- A time of a key that was given as a length, '+ms', has that length as its fraction: 1 + 29 · log2(ms + 1) in 1024ths,
-- rounded up. So it is known to within 2.5 %, never as too short, in the 12 bits that a score has left. Whole numbers
-- are times that the user meant, or of an older release, and are believed as they are.

local function timedMark(ms)
  local mark = 1 + math.ceil(29 * math.log(ms + 1) / math.log(2))
  return mark < 1024 and mark / 1024 or 0
end

-- What lies further ahead than the length that was meant is of a clock that went back since.
local function timedBelieved(time, at)
  local mark = time % 1
  if mark == 0 then
    return time
  end
  return math.min(time, at + math.floor(2 ^ ((mark * 1024 - 1) / 29) - 0.5) + mark)
end

-- Whole numbers of up to 16 digits as text, which tostring would shorten.
local function timedNumber(number)
  return string.format('%.0f', number)
end

-- A time of a key as text, with its fraction.
local function timedText(time)
  return string.format('%.17g', time)
end

-- What is known of a key, read once: what becomes of it is decided here and written in the end, because a
-- key of Redis that became empty may not be touched again.
-- A lease that ends later than it was meant to from now on is of a clock that went back since.
-- `score`: of the key, if it was just read.
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
    -- An older release wrote none.
    ms, ends = tonumber(ms), tonumber(ends)
    local moved = tonumber(after)
    local comes, over = moved and timedBelieved(moved, at), ms and math.min(ends, at + ms) or ends
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

-- The server time that is meant: one as it is, or '+ms' from here on.
local function timedAt(time, at)
  local ms = tonumber(time:match('^%+(%d+)$'))
  return ms and at + ms + timedMark(ms) or tonumber(time)
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
-- `clock` remembers, to the second, when a length was last given: a take at which the clock reads less knows that it
-- went back.
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

-- How many keys are read at once, at most `most`, so that they are no more than about a quarter of a mebibyte. How long
-- they are is not known before: `longest` is the longest that was seen, and who reads begins with few.
local function timedPage(most, longest)
  return math.max(1, math.min(most, math.floor(262144 / longest)))
end

-- Once the clock went back, goes through what lies ahead, a page a call from `from` on. Keys of one score are believed,
-- or not, all alike: those that are not are moved to before the place from which the next page begins, and those that
-- are can be left behind. Less than a second is left alone. Answers whether there is more.
local function timedAhead(touched, keys, at)
  local v = redis.call('HMGET', keys.clock, 'at', 'from')
  local from = v[2]
  if v[1] and v[1] - at >= 1000 then
    from = at
  end
  if not from then
    return false
  end
  local size, longest, page, moves = 1, 1, nil, false
  for _, most in ipairs({ 1, 8, 200 }) do
    size = timedPage(most, longest)
    page = redis.call('ZRANGE', keys.due, from, '+inf', 'BYSCORE', 'LIMIT', 0, size, 'WITHSCORES')
    for i = 1, #page, 2 do
      longest = math.max(longest, #page[i])
    end
  end
  for i = 1, #page, 2 do
    local time = tonumber(page[i + 1])
    moves = timedBelieved(time, at) < time
    if moves then
      timedEntry(touched, keys.due, keys.leases, page[i], at)
    end
  end
  redis.call('HSET', keys.clock, 'at', timedNumber(at))
  if #page < 2 * size then
    redis.call('HDEL', keys.clock, 'from')
    return false
  end
  redis.call('HSET', keys.clock, 'from', (moves and '' or '(') .. page[#page])
  return true
end

-- What lies too far ahead comes in time also when the clock went back. Leases of dead takers: a few of all are looked
-- at by each take. Answers whether there is more to be gone through.
local function timedClockBack(touched, keys, at)
  local more = timedAhead(touched, keys, at)
  local longest = 1
  for _, most in ipairs({ 1, 4, 20 }) do
    -- A user of an older release's rights may not, and does without.
    local some = redis.pcall('HRANDFIELD', keys.leases, timedPage(most, longest), 'WITHVALUES')
    for i = 1, #some, 2 do
      local ends, ms = some[i + 1]:match('^%S+ %S+ (%d+)%.(%d+) ')
      if ends and tonumber(ends) > at + ms then
        timedEntry(touched, keys.due, keys.leases, some[i], at)
      end
      longest = math.max(longest, #some[i])
    end
  end
  timedFlush(touched, keys, '', at)
  return more
end
