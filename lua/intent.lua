--- Opens an id on the queue side before anything exists on the request side, so that whatever a
--- dying producer leaves behind is found by the agenda.
--
-- KEYS
--   open      hash  id -> generation of every open request
--   agenda    zset  id -> time of its next attention
--   counters  hash  counts of this queue; 'generation': none is given out that is lower; 'openedAt': the latest
--                   time by which an id was opened, so that a tick sees that the clock went back since
-- ARGV
--   id       string  of the request
--   graceMs  int     until the first tend looks whether the request came into being
--   idleMs   int     a queue that nobody uses for so long forgets its counts
--   above    int     the generation is greater than this one, which the request side knows; 0: it knows none
-- REPLIES
--   {'opened', generation: int}  the id is open under this generation, by this call or an earlier one
-- REPEAT  the generation of the first call; which of two submitters owns it, create decides
-- FLAGS

--- @include now

local open, agenda, counters = KEYS[1], KEYS[2], KEYS[3]
local id, graceMs, idleMs, above = ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])

-- A server that lost its last writes may have an id open under a life that is over. That one is replaced.
local generation = tonumber(redis.call('HGET', open, id))
if not generation or generation <= above then
  local at = now()
  -- A generation is about the server's time, so that the request side can tell an old create by its age. Lives
  -- of several ids share one rather than that it ran ahead of the clock: `finish` sees to it that those
  -- of one id differ.
  local v = redis.call('HMGET', counters, 'generation', 'openedAt')
  local last = tonumber(v[1]) or 0
  generation = math.max(at, last - at < 1000 and last + 1 or last, above + 1)
  redis.call('HSET', counters, 'generation', generation, 'openedAt', math.max(at, tonumber(v[2]) or 0))
  redis.call('PEXPIRE', counters, idleMs)
  redis.call('HSET', open, id, generation)
  redis.call('ZADD', agenda, at + graceMs, id)
end
return { 'opened', generation }
