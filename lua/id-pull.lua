--- Hands out the next task of a queue of ids, or says why there is none. Pending tasks come first, in order; then
--- one whose time ran out, which the caller may resume. A task that is overdue by another whole timeout is offered
--- before pending ones, once per timeout, so that endless adds do not starve it.
---
--- The number of a task is its place in the order of adding, given when it is popped. A server that lost its last
--- writes may give it to another id; therefore the attempts of a task count from a number that its caller drew.
--
-- KEYS
--   state    hash  of the queue
--   pending  list  ids; pushed right, popped left
--   running  zset  number -> time at which its time runs out, or at which it was last offered after that
--   tasks    hash  number -> 'attempt:stamp:id' of those that run or ran out
-- ARGV
--   incarnation  string  of the queue
--   first        int     number of the first attempt: 32 · a number that the caller drew anew, + 1
-- REPLIES
--   {'ready', number: int, attempt: int, id: text, at: int}     the caller's until its time runs out
--   {'timedout', number: int, attempt: int, id: text, at: int}  its time ran out in another's hands
--   {'processing', at: int}                     all in others' hands
--   {'none', at: int}                           nothing is there
--   {'gone'}                               no such queue
-- REPEAT  hands out another: what the first one took runs out and is offered again, nothing is lost
-- FLAGS allow-oom

--- @include now

local state, pending, running, tasks = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local incarnation, first = ARGV[1], ARGV[2]

local v = redis.call('HMGET', state, 'life', 'timeoutMs')
if v[1] ~= incarnation then
  return { 'gone' }
end
local timeoutMs, at = tonumber(v[2]), now()
-- What runs out later than it can is of a clock that went back since.
for _, far in ipairs(redis.call('ZRANGEBYSCORE', running, '(' .. at + timeoutMs, '+inf', 'LIMIT', 0, 500)) do
  -- cure: ids, the clock back
  redis.call('ZADD', running, at + timeoutMs, far)
end
local late = redis.call('ZRANGEBYSCORE', running, '-inf', at, 'WITHSCORES', 'LIMIT', 0, 1)
local number, since = late[1], tonumber(late[2])
-- cure: ids, overdue ones first
if not number or since + timeoutMs > at then
  local id = redis.call('LPOP', pending)
  if id then
    number = redis.call('HINCRBY', state, 'pulled', 1)
    redis.call('HSET', tasks, number, first .. ':' .. at .. ':' .. id)
    redis.call('ZADD', running, at + timeoutMs, number)
    return { 'ready', number, tonumber(first), id, at }
  end
end
if number then
  local attempt, id = redis.call('HGET', tasks, number):match('^(%d+):%d+:(.*)$')
  -- Behind the others that ran out, so that they take turns.
  -- cure: ids, offered in turn
  redis.call('ZADD', running, at, number)
  return { 'timedout', tonumber(number), tonumber(attempt), id, at }
end
if redis.call('EXISTS', running) == 1 then
  return { 'processing', at }
end
return { 'none', at }
