--- Ends the pause of a queue, no matter who began it.
--
-- KEYS
--   paused  hash  until: when the pause ends by itself, 0: never; length: 'until ms', for how long it is meant
-- ARGV
--   channel  string  shard channel that notifies the workers of the queue
-- REPLIES
--   {'resumed', until: int}  until: when the pause would have ended, 0: never; -1: the queue was not paused
-- REPEAT  'resumed', -1
-- FLAGS allow-oom

--- @include now, pause

local paused = KEYS[1]
local channel = ARGV[1]

local at = now()
local ends = pauseEnds(paused, at)
redis.pcall('SPUBLISH', channel, 'resume-queue 0 ' .. at)
-- cure: a hold is never made shorter, 4
redis.call('UNLINK', paused)
return { 'resumed', ends }
