--- @needs series
-- The registry of the workers: a sign of life of each, and what each says about itself.

-- Signs of life that lie ahead, as the clock went back since, are taken for signs of now.
local function believeSigns(workers, at)
  for _, worker in ipairs(redis.call('ZRANGEBYSCORE', workers, '(' .. at, '+inf', 'LIMIT', 0, 500)) do
    redis.call('ZADD', workers, at, worker)
  end
end

-- Notes the sign of life of a worker, and what it reports; '': the caller is none.
local function noteWorker(workers, workerInfo, series, worker, info, at, goneMs)
  if worker ~= '' then
    if noteFigures(series, workers, workerInfo, worker, info, at) then
      redis.call('HSET', workerInfo, worker, info)
    end
    redis.call('ZADD', workers, at, worker)
    redis.call('PEXPIRE', workers, 10 * goneMs)
    redis.call('PEXPIRE', workerInfo, 10 * goneMs)
  end
end

-- Removes workers that gave no sign of life for `goneMs`.
local function removeGone(workers, workerInfo, at, goneMs)
  for _, dead in ipairs(redis.call('ZRANGEBYSCORE', workers, '-inf', at - goneMs, 'LIMIT', 0, 500)) do
    redis.call('ZREM', workers, dead)
    redis.call('HDEL', workerInfo, dead)
  end
end
