--- @needs timed-times, timed-entries
-- How many keys to read at once: at most `most`, and no more than about a quarter of a mebibyte. Their lengths are not
-- known before: `longest` is the longest that was seen, so a caller begins with few.
local function timedPage(most, longest)
  return math.max(1, math.min(most, math.floor(262144 / longest)))
end

-- After the clock went back by a second or more, goes through the times that lie ahead, a page a call, beginning at the
-- stored `from`. Keys of one score are all believed, or none: those that are not move to before the place at which
-- the next page begins, and those that are can be left behind. Returns whether there is more.
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
  redis.call('HSET', keys.clock, 'from',
    -- cure: a scan of times that lie ahead continues page by page, 2
    (moves and '' or '(') .. page[#page])
  return true
end

-- Brings times back that lie too far ahead because the clock went back. Of the leases of dead takers each take checks a
-- few. Returns whether there is more to go through.
local function timedClockBack(touched, keys, at)
  -- cure: a delay is believed for its length
  local more = timedAhead(touched, keys, at)
  local longest = 1
  for _, most in ipairs({ 1, 4, 20 }) do
    -- A user with the rights of an older release may not call this, and does without.
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
