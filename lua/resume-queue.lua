--- Ends the pause of a queue, no matter who began it.
--
-- KEYS
--   paused  hash  until: when the pause ends by itself, 0: never
-- ARGV
--   channel  string  shard channel that notifies the workers of the queue
-- REPLIES
--   {'resumed'}  the queue is not paused, perhaps it was not before
-- REPEAT  the same reply
-- FLAGS allow-oom

--- @include now

local paused = KEYS[1]
local channel = ARGV[1]

redis.pcall('SPUBLISH', channel, 'resume-queue 0 ' .. now())
-- cure: a hold is never made shorter, 4
redis.call('UNLINK', paused)
return { 'resumed' }
