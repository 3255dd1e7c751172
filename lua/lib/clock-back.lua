-- The server's clock may go back, also by a failover to a server whose clock is behind. What was written
-- before then lies ahead of it, and is moved by as much.

-- The agenda went back by `byMs` at least. What is ahead of the clock is shifted from here on. Where a shift is under
-- way already, both are to be done; what is shifted too far is looked at early, and the look says when.
local function clockWentBack(counters, byMs, at)
  -- Less is no more than a look that comes late.
  if byMs < 1000 then
    return
  end
  local under = tonumber(redis.call('HGET', counters, 'shiftMs')) or 0
  redis.call('HSET', counters, 'shiftMs', under + byMs, 'shiftFrom', at)
end

-- Shifts a page of the agenda, the earliest first: what was shifted lies below the place from which the
-- next page begins.
local function shiftAgenda(counters, agenda)
  local v = redis.call('HMGET', counters, 'shiftMs', 'shiftFrom')
  if not v[1] then
    return
  end
  local page = redis.call('ZRANGEBYSCORE', agenda, v[2], '+inf', 'WITHSCORES', 'LIMIT', 0, 1000)
  for i = 1, #page, 2 do
    redis.call('ZADD', agenda, page[i + 1] - v[1], page[i])
  end
  if #page == 2000 then
    redis.call('HSET', counters, 'shiftFrom', page[2000])
  else
    redis.call('HDEL', counters, 'shiftMs', 'shiftFrom')
  end
end

-- Signs of life that lie ahead are of now, at the latest.
local function signsOfLife(workers, at)
  for _, worker in ipairs(redis.call('ZRANGEBYSCORE', workers, '(' .. at, '+inf', 'LIMIT', 0, 500)) do
    redis.call('ZADD', workers, at, worker)
  end
end
