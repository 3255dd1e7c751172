--- Opens an id on the queue side before anything exists on the request side, so that the agenda finds whatever a
--- producer leaves behind when it dies.
--
-- KEYS
--   open      hash  id -> generation of every open request
--   agenda    zset  id -> time of its next attention
--   counters  hash  counts of this queue; 'generation': none is given out that is lower; 'openedAt': the latest
--                   time by which an id was opened, so that a tick sees that the clock went back since;
--                   'firstAt': the time of the first
-- ARGV
--   id       string  of the request
--   graceMs  int     until the first tend checks whether the request was created
--   above    int     the generation is greater than this one, which the request side knows; 0: it knows none
-- REPLIES
--   {'opened', generation: int}  the id is open under this generation, by this call or an earlier one
-- REPEAT  the generation of the first call; which of two submitters owns it, create decides
-- FLAGS

--- @include now, digits, generation, open-ids

local open, agenda, counters = KEYS[1], KEYS[2], KEYS[3]
local id, graceMs, above = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

-- A server that lost its last writes may have an id open under a generation that has ended. That one is replaced.
local generation = tonumber(redis.call('HGET', open, id))
if not generation or --[[cure: an open generation that has ended is replaced]] generation <= above then
  local at = now()
  local v = redis.call('HMGET', counters, 'generation', 'openedAt')
  generation = nextGeneration(tonumber(v[1]) or 0, at, above)
  openIds(open, counters, { id, generation }, generation, at, v[2])
  redis.call('ZADD', agenda, at + graceMs, id)
end
return { 'opened', generation }
