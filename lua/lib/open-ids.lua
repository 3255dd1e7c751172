--- @needs digits
-- Opens ids on the queue side. `opened`: id, generation, … · `last`: the highest generation that was given out ·
-- `openedAt`: as the counters have it
local function openIds(open, counters, opened, last, at, openedAt)
  -- First, as a user who reads only may do the rest, but not this: a call that is refused has written nothing.
  -- cure: the counts of a queue in use do not expire
  redis.call('PERSIST', counters)
  redis.call('HSET', counters, 'generation', last,
    -- cure: an opened id shows how far the clock was
    'openedAt', digits(math.max(at, tonumber(openedAt) or 0)))
  if not openedAt then
    -- The first id of this queue: before the first tick that time shows whether Redis was away (lib/gaps).
    redis.call('HSET', counters, 'firstAt', digits(at))
  end
  redis.call('HSET', open, unpack(opened))
end
