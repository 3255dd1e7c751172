--- Ends the pause of a queue, whoever began it.
--
-- KEYS
--   paused  hash  until: when the pause ends by itself, 0: never
-- ARGV
--   channel  string  shard channel on which the workers of the queue are told
-- REPLIES
--   {'resumed'}  the queue is not paused, perhaps it was not before
-- REPEAT  the same reply
-- FLAGS allow-oom

--- @include now

local paused = KEYS[1]
local channel = ARGV[1]

redis.pcall('SPUBLISH', channel, 'resume-queue 0 ' .. now())
redis.call('UNLINK', paused)
return { 'resumed' }
