--- Joins the queue of ids of this name, or creates it. `incarnation` tells one from a later one of the name.
--
-- KEYS
--   state  hash  of the queue: incarnation, options, counters, number of the last add of each sender
-- ARGV
--   incarnation  string  of the queue, if this creates it
--   timeoutMs    int|''  how long a task may be in one hand; '' when the caller takes what is there
--   unique       int|''  1: an id is one task while it is pending or running; '' as above
--   defaultMs    int     timeoutMs of one that is created without
-- REPLIES
--   {'joined', incarnation: text, timeoutMs: int, unique: int}  created, or there already
--   {'differs', timeoutMs: int, unique: int}       there already, with other options
-- REPEAT  joins what the first one created
-- FLAGS

local state = KEYS[1]
local incarnation, timeoutMs, unique, defaultMs = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local v = redis.call('HMGET', state, 'life', 'timeoutMs', 'unique')
if v[1] then
  if (timeoutMs ~= '' and timeoutMs ~= v[2]) or (unique ~= '' and unique ~= v[3]) then
    return { 'differs', v[2], v[3] }
  end
  return { 'joined', v[1], v[2], v[3] }
end
timeoutMs = timeoutMs == '' and defaultMs or timeoutMs
unique = unique == '' and '0' or unique
redis.call('HSET', state, 'life', incarnation, 'timeoutMs', timeoutMs, 'unique', unique)
return { 'joined', incarnation, timeoutMs, unique }
