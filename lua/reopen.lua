--- Opens the id of an unfinished request again when the queue side does not know it any more, as after the server
--- lost its last writes: otherwise no process would ever tend the request.
--
-- KEYS
--   open      hash  id -> generation of every open request
--   agenda    zset  id -> time of its next attention
--   counters  hash  counts of this queue; 'generation' is the last one given out; 'openedAt' as in `intent`
-- ARGV
--   id          string  of the request
--   generation  int     of the request on the request side
--   instead     int     of an intent that the request side refused because of this generation, which takes its
--                       place; 0: none
-- REPLIES
--   {'reopened'}  open under this generation from now on, and tended next
--   {'open'}      it was open under this generation, or a later one
-- REPEAT  'open', nothing changes
-- FLAGS allow-oom

--- @include now, digits, open-ids

local open, agenda, counters = KEYS[1], KEYS[2], KEYS[3]
local id, generation, instead = ARGV[1], ARGV[2], tonumber(ARGV[3])

local known = tonumber(redis.call('HGET', open, id))
-- In one step: were the refused one finished first, and the caller died, the living one would be lost again.
if known and known >= tonumber(generation) and (known == tonumber(generation) or
  -- cure: an existing request takes the place of the intent that it refused
  known ~= instead) then
  return { 'open' }
end
-- What was given out since the state that came back is forgotten too.
local at = now()
local v = redis.call('HMGET', counters, 'generation', 'openedAt')
openIds(open, counters, { id, generation }, math.max(tonumber(v[1]) or 0, tonumber(generation)), at, v[2])
redis.call('ZADD', agenda, at, id)
return { 'reopened' }
