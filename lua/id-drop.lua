--- Removes a queue of ids with everything in it.
--
-- KEYS
--   state    hash  of the queue
--   pending  list  ids
--   running  zset  number -> time at which its time runs out
--   tasks    hash  number -> 'attempt:stamp:id'
--   known    set   ids that are pending or running
--   failed   list  the latest failures
--   senders  zset  sender -> time until which the number of its last chunk is kept
-- ARGV
--   incarnation  string  of the queue
-- REPLIES
--   {'dropped'}  nothing of it is left
--   {'gone'}     no such queue, or a later one of the name, which stays
-- REPEAT  'gone'
-- FLAGS allow-oom

local state, pending, running, tasks, known, failed, senders =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local incarnation = ARGV[1]

-- cure: ids, one incarnation, 2
if redis.call('HGET', state, 'life') ~= incarnation then
  return { 'gone' }
end
redis.call('UNLINK', state, pending, running, tasks, known, failed, senders)
return { 'dropped' }
