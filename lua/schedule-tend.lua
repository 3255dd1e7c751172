--- Brings the next attention of a request forward: when a worker knows when its next retry is due, or before a client
--- changes a request.
--
-- KEYS
--   open    hash  id -> generation
--   agenda  zset  id -> time of its next attention
-- ARGV
--   id          string  of the request
--   generation  int     of the request
--   time        int     when to tend, server time in ms; 0: now
--   afterMs     int?    with time 0: so long from now
-- REPLIES
--   {'noted'}   it will be tended by then
--   {'closed'}  the id is not open under this generation
-- REPEAT  nothing changes
-- FLAGS allow-oom

--- @include now, due

local open, agenda = KEYS[1], KEYS[2]
local id, generation, time, afterMs = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]) or 0

if redis.call('HGET', open, id) ~= generation then
  return { 'closed' }
end
noteDue(agenda, id, time == 0 and now() + afterMs or time)
return { 'noted' }
