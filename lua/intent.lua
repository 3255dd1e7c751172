--- Opens an id on the queue side before anything exists on the request side, so that whatever a
--- dying producer leaves behind is found by the agenda.
--
-- KEYS
--   open      hash  id -> generation of every open request
--   agenda    zset  id -> time of its next attention
--   counters  hash  counts of this queue; 'generation' is the last one given out
-- ARGV
--   id       string  of the request
--   graceMs  int     until the first tend looks whether the request came into being
--   idleMs   int     a queue that nobody uses for so long forgets its counts
--   above    int     the generation is greater than this one, which the request side knows; 0: it knows none
-- REPLIES
--   {'opened', generation}  the id is open under this generation, by this call or an earlier one
-- REPEAT  the generation of the first call; which of two submitters owns it, create decides
-- FLAGS

--- @include now

local open, agenda, counters = KEYS[1], KEYS[2], KEYS[3]
local id, graceMs, idleMs, above = ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])

-- A server that lost its last writes may have an id open under a life that is over. That one is replaced.
local generation = tonumber(redis.call('HGET', open, id))
if not generation or generation <= above then
  local at = now()
  -- A generation is the server's time, so that the request side can tell an old create by its age.
  local last = tonumber(redis.call('HGET', counters, 'generation')) or 0
  generation = math.max(at, last + 1, above + 1)
  redis.call('HSET', counters, 'generation', generation)
  redis.call('PEXPIRE', counters, idleMs)
  redis.call('HSET', open, id, generation)
  redis.call('ZADD', agenda, at + graceMs, id)
end
return { 'opened', generation }
