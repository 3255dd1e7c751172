--- Notes that a worker met a request whose task it does not serve. A worker that serves the task finds the request
--- here at its next tick and enters without a token.
--
-- KEYS
--   open          hash  id -> generation
--   parked        hash  id -> 'generation task'
--   parkedByTask  zset  'task\0id' of those, all of score 0
-- ARGV
--   id          string  of the request
--   generation  int     of the request
--   task        string  its task, perhaps empty
-- REPLIES
--   {'parked'}  noted
--   {'closed'}  the id is not open under this generation
-- REPEAT  nothing changes
-- FLAGS allow-oom

--- @include parked

local open, parked, parkedByTask = KEYS[1], KEYS[2], KEYS[3]
local id, generation, task = ARGV[1], ARGV[2], ARGV[3]

if redis.call('HGET', open, id) ~= generation then
  return { 'closed' }
end
notePark(parked, parkedByTask, id, generation, task)
return { 'parked' }
