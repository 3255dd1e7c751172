--- Brings the next attention of a request forward: when a worker knows when its next retry is due, or before a client
--- changes a request.
--
-- KEYS
--   open    hash  id -> generation
--   agenda  zset  id -> time of its next attention; 'id~' -> until when it is tended for a change
-- ARGV
--   id          string  of the request
--   generation  int     of the request
--   time        int     when to tend, server time in ms; 0: now
--   afterMs     int?    with time 0: so long from now, and until then no tend puts it off, as a change follows
-- REPLIES
--   {'noted'}   it will be tended by then
--   {'closed'}  the id is not open under this generation
-- REPEAT  nothing changes; with afterMs, that time begins anew
-- FLAGS allow-oom

--- @include now, due

local open, agenda = KEYS[1], KEYS[2]
local id, generation, time, afterMs = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])

if redis.call('HGET', open, id) ~= generation then
  return { 'closed' }
end
if afterMs then
  time = now() + afterMs
  -- cure: a change that is announced is not put off, 2
  redis.call('ZADD', agenda, time, id .. '~')
end
noteDue(agenda, id, time == 0 and now() or time)
return { 'noted' }
