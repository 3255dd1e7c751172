-- A request that waits for a worker that serves its task is in the hash `parked`, and in the index `parkedByTask`: a
-- sorted set of 'task\0id', all with score 0, from which a worker reads the tasks that it serves, page by page.

local function taskIn(value)
  return value:match('^%d+ (.*)$')
end

local function notePark(parked, parkedByTask, id, generation, task)
  local known = redis.call('HGET', parked, id)
  if known and taskIn(known) ~= task then
    redis.call('ZREM', parkedByTask, taskIn(known) .. '\0' .. id)
  end
  redis.call('HSET', parked, id, generation .. ' ' .. task)
  redis.call('ZADD', parkedByTask, 0, task .. '\0' .. id)
end

-- Removes these ids from both.
local function noteUnpark(parked, parkedByTask, ids)
  for i, known in ipairs(redis.call('HMGET', parked, unpack(ids))) do
    if known then
      redis.call('HDEL', parked, ids[i])
      redis.call('ZREM', parkedByTask, taskIn(known) .. '\0' .. ids[i])
    end
  end
end
