--- Pauses a queue, for good or for a time: its workers take no more tokens and leave their requests as their
--- handlers end. A message notifies them; at the latest they see it with their next tick.
--
-- KEYS
--   paused  hash  until: when the pause ends by itself, 0: never; length: 'until ms', for how long it is meant
-- ARGV
--   forMs    int     how long from here; 0: until `resume-queue`
--   channel  string  shard channel that notifies the workers of the queue
-- REPLIES
--   {'paused', until: int, now: int}  until: server time, 0: until it is resumed; never earlier than before
-- REPEAT  'paused', from then on for so long
-- FLAGS allow-oom

--- @include now, pause

local paused = KEYS[1]
local forMs, channel = tonumber(ARGV[1]), ARGV[2]

local at = now()
local known = pauseEnds(paused, at)
-- cure: a hold is never made shorter, 2
local ends = math.max(at + forMs, known)
if forMs == 0 or --[[cure: a hold is never made shorter, 3]] known == 0 then
  ends = 0
elseif ends > known then
  -- cure: a pause that is asked for again
  redis.call('HSET', paused, 'length', ends .. ' ' .. forMs)
end
redis.call('HSET', paused, 'until', ends)
-- A user without the right to publish pauses all the same: workers see it when they tick.
redis.pcall('SPUBLISH', channel, 'pause-queue ' .. ends .. ' ' .. at)
return { 'paused', ends, at }
