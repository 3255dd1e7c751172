--- Brings the next attention of a request forward, as when a worker knows when its next retry is due.
--
-- KEYS
--   open    hash  id -> generation
--   agenda  zset  id -> time of its next attention
-- ARGV
--   id          string  of the request
--   generation  int     of the request
--   time        int     when to tend, server time in ms; 0: now
-- REPLIES
--   {'noted'}   it will be tended by then
--   {'closed'}  the id is not open under this generation
-- REPEAT  nothing changes
-- FLAGS allow-oom

--- @include now

local open, agenda = KEYS[1], KEYS[2]
local id, generation, time = ARGV[1], ARGV[2], tonumber(ARGV[3])

if redis.call('HGET', open, id) ~= generation then
  return { 'closed' }
end
redis.call('ZADD', agenda, 'LT', time == 0 and now() or time, id)
return { 'noted' }
