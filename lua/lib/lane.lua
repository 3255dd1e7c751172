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

-- LINSERT goes through the lane from its left end, and a lane may hold a million: so many it passes in one call, for
-- all tokens together. From the right end so many are taken off and put back.
local FROM_LEFT, FROM_RIGHT = 100000, 1000

-- Puts `count` equal tokens into their place, behind those of the same request. Most go to an end. Where the place
-- is far from both they go too far to the left: too late, never too early. When they should have been popped
-- they are taken for lost, like any that is behind its turn, and others go to the right end (docs/decisions/0033).
local function pushIntoLane(lane, token, count)
  local generation, due = placeInLane(token)
  local length = redis.call('LLEN', lane)
  -- First of all: whatever stands behind its turn, what goes before all that do not goes to the front.
  if length > 0 and goesBefore(generation, due, redis.call('LINDEX', lane, -1)) then
    for _ = 1, count do
      redis.call('RPUSH', lane, token)
    end
    return
  end
  local low, high = 1, length
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
  local reach = math.floor(FROM_LEFT / count)
  if length - low > reach then
    local before = low <= FROM_RIGHT and redis.pcall('LMPOP', 1, lane, 'RIGHT', 'COUNT', low)
    -- A user of the server that may not call LMPOP puts them too far to the left.
    if before and before[2] then
      local back = {}
      for i = 1, count do
        back[i] = token
      end
      for i = low, 1, -1 do
        back[#back + 1] = before[2][i]
      end
      redis.call('RPUSH', lane, unpack(back))
      return
    end
    low = length - reach
  end
  -- So many, from the right, stay before it. The leftmost of them is the first of its text in the lane.
  local neighbour = redis.call('LINDEX', lane, -low)
  for _ = 1, count do
    redis.call('LINSERT', lane, 'BEFORE', neighbour, token)
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
