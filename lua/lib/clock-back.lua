-- The server's clock may go back, also by a failover to a server whose clock is behind. Times that were written before
-- lie ahead of it then, and are moved back by as much.

-- Less is no more than a tick that comes late.
local BACK_MS = 1000

-- Notes that the clock went back by at least `byMs`: from here on the agenda is shifted. Where a shift is under way
-- already, both are done; what is shifted too far is tended early, and the tend says when it is due again.
local function clockWentBack(counters, byMs, at)
  if byMs < BACK_MS then
    return
  end
  local under = tonumber(redis.call('HGET', counters, 'shiftMs')) or 0
  redis.call('HSET', counters, 'shiftMs', under + byMs, 'shiftFrom', at)
end

-- Shifts a page of the agenda, the earliest entries first: those lie below the place from which the next page begins.
local function shiftAgenda(counters, agenda)
  local v = redis.call('HMGET', counters, 'shiftMs', 'shiftFrom')
  if not v[1] then
    return
  end
  local page = redis.call('ZRANGEBYSCORE', agenda, v[2], '+inf', 'WITHSCORES', 'LIMIT', 0, 1000)
  for i = 1, #page, 2 do
    redis.call('ZADD', agenda, page[i + 1] - v[1], page[i])
  end
  -- cure: the agenda is shifted when the clock went back
  if #page == 2000 then
    -- cure: the agenda is shifted when the clock went back, 2
    redis.call('HSET', counters, 'shiftFrom', page[2000])
  else
    redis.call('HDEL', counters, 'shiftMs', 'shiftFrom')
  end
end
