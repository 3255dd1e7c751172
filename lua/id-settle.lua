--- Ends a task of a queue of ids. A success counts from any attempt, as long as the task is there; a failure only
--- from the current attempt. Either counts once. The attempts of one task lie in one block of 32 (id-pull); an
--- attempt of another block belongs to a task that the server forgot, and whose number it gave to another id.
--
-- KEYS
--   state    hash  of the queue
--   running  zset  number -> time at which its time runs out
--   tasks    hash  number -> 'attempt:stamp:id'
--   known    set   of a unique queue: ids that are pending or running
--   failed   list  the latest 100 failures, newest left: id, key, message, time of each
-- ARGV
--   incarnation  string  of the queue
--   number       int     of the task
--   attempt      int     that reports
--   kind         string  's' success, 'f' failure
--   message      string  of the failure
-- REPLIES
--   {'counted'}  done
--   {'late'}     it had ended, or is another's by now; nothing was counted
--   {'gone'}     no such queue
-- REPEAT  'late': nothing is counted twice
-- FLAGS allow-oom

--- @include now

local state, running, tasks, known, failed = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local incarnation, number, attempt, kind, message =
  ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]

local v = redis.call('HMGET', state, 'life', 'unique')
-- cure: ids, one incarnation
if v[1] ~= incarnation then
  return { 'gone' }
end
local task = redis.call('HGET', tasks, number)
if not task then
  return { 'late' }
end
local current, id = task:match('^(%d+):%d+:(.*)$')
current = tonumber(current)
local forgotten = math.floor(attempt / 32) ~= math.floor(current / 32)
if
  -- cure: ids, a number given again
  forgotten or attempt > current or (
  -- cure: ids, failures of the current attempt
  kind == 'f' and attempt < current) then
  return { 'late' }
end
redis.call('HINCRBY', state, 'completed', 1)
if kind == 'f' then
  redis.call('HINCRBY', state, 'failures', 1)
  redis.call('LPUSH', failed, now(), message, number .. '-' .. attempt, id)
  redis.call('LTRIM', failed, 0, 399)
end
redis.call('ZREM', running, number)
redis.call('HDEL', tasks, number)
if v[2] == '1' then
  -- cure: ids, known until completed
  redis.call('SREM', known, id)
end
return { 'counted' }
