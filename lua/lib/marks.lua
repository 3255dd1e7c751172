--- @needs lane
-- A request whose tokens are out sleeps in `wait` until they have been popped: its score is the priority and the mark
-- behind the last of them.
local SPAN = 2 ^ 44

-- Ids of a list whose mark has been passed. Lists are first in, first out: when as many tokens were ever popped as had
-- been pushed at the mark, every token counted before it has been popped.
local function passedInList(queue, priority, room)
  local base = priority * SPAN
  local ever = tonumber(redis.call('HGET', queue.pushed, priority)) or 0
  local popped = ever - redis.call('LLEN', queue.lists[priority + 1])
  return redis.call('ZRANGEBYSCORE', queue.wait, base, base + popped, 'LIMIT', 0, room)
end

-- Ids of a lane whose tokens have been popped. A lane is in order of due time: a request that goes before its next
-- token has no token in it any more. One that goes before it and has a token to come would get a slot first anyway.
-- `lane`: the key, or nil when the caller does not know it yet.
local function passedInLane(queue, priority, lane, room)
  local base = (100 + priority) * SPAN
  if not lane then
    return {}
  end
  local first = redis.call('LINDEX', lane, -1)
  if not first then
    return redis.call('ZRANGEBYSCORE', queue.wait, base, base + SPAN - 1, 'LIMIT', 0, room)
  end
  local _, due = placeInLane(first)
  local passed = {}
  local waiting = redis.call('ZRANGEBYSCORE', queue.wait, base, base + due, 'WITHSCORES', 'LIMIT', 0, room)
  for i = 1, #waiting, 2 do
    local generation = tonumber(redis.call('HGET', queue.open, waiting[i])) or 0
    -- cure: tokens lost from a lane
    if goesBefore(generation, waiting[i + 1] - base, first) then
      passed[#passed + 1] = waiting[i]
    end
  end
  return passed
end

-- The keys of the lanes that `lanes` names, by priority. They come behind the 100 lists.
local function lanesIn(lists, lanes)
  local laneOf, given = {}, 100
  for priority in lanes:gmatch('%d+') do
    given = given + 1
    laneOf[tonumber(priority)] = lists[given]
  end
  return laneOf
end

-- Notes which requests have had all their tokens popped: they are due in a grace, within which those tokens may still
-- enter. At most 500 a call: what is found waits no longer, so the next call finds others. Returns the lanes that are
-- waited for and that the caller does not know; also one into which no token ever came, because the token that is
-- waited for was lost before.
local function notePassed(queue, lanes, at, graceMs)
  local laneOf, unknown, room, from = lanesIn(queue.lists, lanes), {}, 500, 0
  while room > 0 do
    local first = redis.call('ZRANGEBYSCORE', queue.wait, from, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
    if not first[1] then
      break
    end
    local priority, passed = math.floor(tonumber(first[2]) / SPAN), nil
    if priority < 100 then
      passed = passedInList(queue, priority, room)
    else
      local lane = laneOf[priority - 100]
      if not lane then
        -- cure: tokens lost before their lane was known
        unknown[#unknown + 1] = priority - 100
      end
      passed = passedInLane(queue, priority - 100, lane, room)
    end
    for _, id in ipairs(passed) do
      local epoch = (redis.call('HGET', queue.marks, id) or '0'):match('^%d+')
      redis.call('ZREM', queue.wait, id)
      redis.call('HSET', queue.marks, id, epoch .. ':' .. at)
      -- cure: token epochs, 2
      redis.call('ZADD', queue.agenda, 'LT', at + graceMs, id)
    end
    -- cure: one tick passes so many in all
    room = room - #passed
    from = (priority + 1) * SPAN
  end
  return unknown
end
