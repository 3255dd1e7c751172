-- A request that waits for a worker of its task stands in the hash `parked`, and in the index `parkedByTask`: a sorted
-- set of 'task\0id', all of score 0, of which a worker reads what it serves, a page at a time. The hash is what
-- counts: workers of an earlier version know no index, so an entry of it may be missing, or left behind. It goes by
-- itself when nobody has written into it for an hour.
local INDEX_KEPT_MS = 3600000

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
  redis.call('PEXPIRE', parkedByTask, INDEX_KEPT_MS)
end

local function noteUnpark(parked, parkedByTask, id)
  local known = redis.call('HGET', parked, id)
  if known then
    redis.call('HDEL', parked, id)
    redis.call('ZREM', parkedByTask, taskIn(known) .. '\0' .. id)
  end
end
