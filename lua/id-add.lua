--- Adds ids to a queue of ids, behind those that are pending. A sender numbers its chunks upwards and sends them
--- one after the other, so that a chunk that arrives twice, or late, adds nothing twice. If the chunk before it is
--- missing, the server lost that one, and the sender continues from there.
--
-- KEYS
--   state    hash  of the queue
--   pending  list  ids; pushed right, popped left
--   known    set   of a unique queue: ids that are pending or running
--   senders  zset  sender -> time until which the number of its last chunk is kept
-- ARGV
--   incarnation  string  of the queue
--   sender       string  who adds
--   number       int     of this chunk
--   keepMs       int     for how long its number is kept from here: longer than a call may be late
--   first        int     number of the first chunk of the same add
--   ids...       string  at most 500
-- REPLIES
--   {'ok', pending: int, added: int}  pending: now · added: by this call
--   {'gap', number: int}         of the last chunk that is known: the next is missing; nothing is added
--   {'gone'}                no such queue
-- REPEAT  'ok' with what is pending then; nothing is added
-- FLAGS

--- @include now

local state, pending, known, senders = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local incarnation, sender, number, keepMs, first =
  ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])

local sentField = 'sent:' .. sender
local v = redis.call('HMGET', state, 'life', 'unique', sentField)
if v[1] ~= incarnation then
  return { 'gone' }
end
local last = tonumber(v[3]) or 0
-- cure: ids, numbered adds
if number <= last then
  return { 'ok', redis.call('LLEN', pending), 0 }
end
-- cure: ids, a chunk that is missing
if number > first and last < number - 1 then
  return { 'gap', last }
end

local at = now()
for _, old in ipairs(redis.call('ZRANGEBYSCORE', senders, '-inf', at, 'LIMIT', 0, 10)) do
  redis.call('HDEL', state, 'sent:' .. old)
  redis.call('ZREM', senders, old)
end
redis.call('HSET', state, sentField, number)
redis.call('ZADD', senders, at + keepMs, sender)
local fresh = {}
for i = 6, #ARGV do
  -- cure: ids, known until completed, 2
  if v[2] == '0' or redis.call('SADD', known, ARGV[i]) == 1 then
    fresh[#fresh + 1] = ARGV[i]
  end
end
if #fresh > 0 then
  redis.call('RPUSH', pending, unpack(fresh))
end
return { 'ok', redis.call('LLEN', pending), #fresh }
