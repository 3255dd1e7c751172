-- A lane holds the tokens of due requests that asked to go before the undelayed ones of their priority.
-- It is popped like a list, from the right, before the list, and kept in order of due time, and of
-- generation where that is equal: a token that comes back has its place before all that is due later.

-- Generation and due time of a token in a lane; a token that is none goes first.
local function placeInLane(token)
  local generation, due = token:match('~(%d+)~%d+~(%d+)$')
  return tonumber(generation) or 0, tonumber(due) or 0
end

-- Whether a request is served before the one whose token it is.
local function goesBefore(generation, due, token)
  local otherGeneration, otherDue = placeInLane(token)
  return due < otherDue or (due == otherDue and generation < otherGeneration)
end

-- Puts `count` equal tokens into their place, behind those of the same request. Most go to an end.
local function pushIntoLane(lane, token, count)
  local generation, due = placeInLane(token)
  local low, high = 0, redis.call('LLEN', lane)
  if high == 0 or not goesBefore(generation, due, redis.call('LINDEX', lane, 0)) then
    for _ = 1, count do
      redis.call('LPUSH', lane, token)
    end
    return
  end
  while low < high do
    local middle = math.floor((low + high) / 2)
    if goesBefore(generation, due, redis.call('LINDEX', lane, -1 - middle)) then
      high = middle
    else
      low = middle + 1
    end
  end
  -- So many, from the right, stay before it. The leftmost of them is the first of its text in the lane.
  local neighbour = low > 0 and redis.call('LINDEX', lane, -low)
  for _ = 1, count do
    if neighbour then
      redis.call('LINSERT', lane, 'BEFORE', neighbour, token)
    else
      redis.call('RPUSH', lane, token)
    end
  end
end

-- Notes that a priority has a lane, and tells the workers when that is new: they name a lane in their
-- pop only once they know that it is used. Whoever did not hear it learns it at its next tick.
local function noteLane(pushed, priority, channel)
  local lanes = redis.call('HGET', pushed, 'lanes') or ''
  if (',' .. lanes .. ','):find(',' .. priority .. ',', 1, true) then
    return
  end
  redis.call('HSET', pushed, 'lanes', lanes == '' and priority or lanes .. ',' .. priority)
  redis.pcall('SPUBLISH', channel, 'lane ' .. priority)
end
