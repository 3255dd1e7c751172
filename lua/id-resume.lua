--- Takes over a task whose time ran out. This compares and sets its attempt: of several consumers that were offered
--- the same attempt exactly one gets it.
--
-- KEYS
--   state    hash  of the queue
--   running  zset  number -> time at which its time runs out, or at which it was last offered after that
--   tasks    hash  number -> 'attempt:stamp:id'
-- ARGV
--   incarnation  string  of the queue
--   number       int     of the task
--   attempt      int     that ran out
-- REPLIES
--   {'ready', number: int, attempt: int, id: text, at: int}  the caller's until its time runs out
--   {'none', at: int}                        another has it, it is done, or its time has not run out
--   {'gone'}                            no such queue
-- REPEAT  'none': if the first reply was lost, it runs out again and is offered again
-- FLAGS allow-oom

--- @include now

local state, running, tasks = KEYS[1], KEYS[2], KEYS[3]
local incarnation, number, attempt = ARGV[1], ARGV[2], tonumber(ARGV[3])

local v = redis.call('HMGET', state, 'life', 'timeoutMs')
if v[1] ~= incarnation then
  return { 'gone' }
end
local timeoutMs, at = tonumber(v[2]), now()
local task = redis.call('HGET', tasks, number)
if not task then
  return { 'none', at }
end
local current, id = task:match('^(%d+):%d+:(.*)$')
-- The stamp may be of a clock that went back since; what `id-pull` offers has run out.
if
  -- cure: ids, the attempt in resume
  tonumber(current) ~= attempt or
  -- cure: ids, the time in resume
  tonumber(redis.call('ZADD', running, 'XX', 'INCR', 0, number) or 0) > at then
  return { 'none', at }
end
redis.call('HSET', tasks, number, string.format('%d:%d:', attempt + 1, at) .. id)
redis.call('ZADD', running, at + timeoutMs, number)
return { 'ready', tonumber(number), attempt + 1, id, at }
