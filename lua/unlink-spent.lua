--- Unlinks what is kept of a request that keeps much when its retention is over, before it would expire: the
--- server frees what is unlinked beside its work, and what expires in the midst of it.
--
-- KEYS
--   request  hash    state of the request
--   failed   hash    index -> error; 'index:payload' -> payload
--   results  stream  outcomes in the order of settling
-- ARGV
--   generation  int  of the life that is over
-- REPLIES
--   {'unlinked'}  by this call
--   {'kept'}      not yet, by the clock of this server
--   {'gone'}      that life is not here any more, or lives on
-- REPEAT  'gone'
-- FLAGS allow-oom

--- @include now

local request, failed, results = KEYS[1], KEYS[2], KEYS[3]
local generation = ARGV[1]

local v = redis.call('HMGET', request, 'generation', 'status', 'spentAt')
if v[1] ~= generation or v[2] ~= 'complete' or not v[3] then
  return { 'gone' }
end
if tonumber(v[3]) > now() then
  return { 'kept' }
end
redis.call('UNLINK', request, failed, results)
return { 'unlinked' }
