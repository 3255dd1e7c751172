--- Shows the counts of a queue of ids at one moment, when its next item runs out, and some of its latest failures.
--
-- KEYS
--   state    hash  of the queue
--   pending  list  ids
--   running  zset  number -> time at which its time runs out
--   failed   list  the latest 100 failures, newest left: id, key, message, time of each
-- ARGV
--   incarnation  string  of the queue; '': whichever is there, for somebody who has not joined it
--   first        int     of the failures that are wanted; 0 is the latest
--   count        int     how many; 0: none
-- REPLIES
--   {'ok', pending: int, running: int, completed: int, failures: int,
--    failed: list(id text, key text, message text, at int), timeoutMs: int, unique: int, next: int}
--      next: the least time at which one that runs runs out, or did; -1: none runs
--   {'gone'}                                               no such queue
-- REPEAT  reads only
-- FLAGS no-writes

local state, pending, running, failed = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local incarnation, first, count = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

local v = redis.call('HMGET', state, 'life', 'completed', 'failures', 'timeoutMs', 'unique')
if not v[1] or (incarnation ~= '' and v[1] ~= incarnation) then
  return { 'gone' }
end
local found = {}
if count > 0 then
  found = redis.call('LRANGE', failed, first * 4, (first + count) * 4 - 1)
end
local next = redis.call('ZRANGEBYSCORE', running, '-inf', '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
return { 'ok', redis.call('LLEN', pending), redis.call('ZCARD', running),
  tonumber(v[2]) or 0, tonumber(v[3]) or 0, found,
  tonumber(v[4]), tonumber(v[5]), tonumber(next) or -1 }
