-- A lane is a list with the tokens of due requests that are to be served before the undelayed ones of their priority.
-- Workers pop it before the list of the priority, from the right. It is sorted by due time, then by generation, so a
-- token that is pushed again comes before all that are due later.

-- Generation and due time of a token in a lane. A text that is no token sorts first.
local function placeInLane(token)
  local generation, due = token:match('~(%d+)~%d+~(%d+)$')
  return tonumber(generation) or 0, tonumber(due) or 0
end

-- Whether a request is served before the request of `token`.
local function goesBefore(generation, due, token)
  local otherGeneration, otherDue = placeInLane(token)
  return due < otherDue or (due == otherDue and generation < otherGeneration)
end

-- A lane may contain a million tokens, and LINSERT searches it from the left end. One call passes at most FROM_LEFT of
-- them, for all its tokens together. From the right end it pops at most FROM_RIGHT and pushes them again.
local FROM_LEFT, FROM_RIGHT = 100000, 1000

-- Inserts `count` equal tokens at their place, behind those of the same request. Most places are at an end. If the
-- place is far from both ends, they are inserted too far to the left: they come too late, never too early. When their
-- turn has passed they count as lost, and new ones are pushed at the right end (docs/decisions/0033).
local function pushIntoLane(lane, token, count)
  local generation, due = placeInLane(token)
  local length = redis.call('LLEN', lane)
  -- Due before the first token: to the right end, even if tokens further left have missed their turn.
  -- cure: a lane in due order
  if length > 0 and goesBefore(generation, due, redis.call('LINDEX', lane, -1)) then
    for _ = 1, count do
      redis.call('RPUSH', lane, token)
    end
    return
  end
  local low, high = 1, length
  -- cure: a lane in due order, 2
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
  if length - low > --[[cure: a long lane is in order, near its end]] reach then
    -- cure: a long lane is not gone through, near its front
    local before = low <= FROM_RIGHT and redis.pcall('LMPOP', 1, lane, 'RIGHT', 'COUNT', low)
    -- Without the right to call LMPOP they are inserted too far to the left.
    if before and before[2] then
      local back = {}
      for i = 1, count do
        back[i] = token
      end
      -- cure: a long lane is not gone through, near its front, 2
      for i = low, 1, -1 do
        back[#back + 1] = before[2][i]
      end
      redis.call('RPUSH', lane, unpack(back))
      return
    end
    -- cure: a long lane is not gone through, far from both ends
    low = length - reach
  end
  -- `low` tokens stay to the right of the new ones. The leftmost of these is also the first in the lane with its text.
  local neighbour = redis.call('LINDEX', lane, -low)
  for _ = 1, count do
    redis.call('LINSERT', lane, 'BEFORE', neighbour, token)
  end
end

-- Notes that a priority has a lane. If that is new, it notifies the workers, which pop a lane only once they know that
-- it is used. A worker that misses the notice learns of the lane from its next tick.
local function noteLane(pushed, priority, channel)
  local lanes = redis.call('HGET', pushed, 'lanes') or ''
  if (',' .. lanes .. ','):find(',' .. priority .. ',', 1, true) then
    return
  end
  redis.call('HSET', pushed, 'lanes', lanes == '' and priority or lanes .. ',' .. priority)
  redis.pcall('SPUBLISH', channel, 'lane ' .. priority)
end
