--- Unlinks what is kept of a large request when its retention has ended, before it would expire: the server frees
--- unlinked data in the background, but expired data in the middle of its work.
--
-- KEYS
--   request  any     state of the request
--   failed   hash    index -> error; 'index:payload' -> payload
--   results  stream  outcomes in the order of settling
-- ARGV
--   generation  int  that has ended
-- REPLIES
--   {'unlinked'}  by this call
--   {'kept'}      not yet, by the clock of this server
--   {'gone'}      that generation is not here any more, or was redriven
-- REPEAT  'gone'
-- FLAGS allow-oom

--- @include now, digits, compact

local request, failed, results = KEYS[1], KEYS[2], KEYS[3]
local generation = ARGV[1]

-- A compact request keeps little.
if isCompact(request) then
  return { 'gone' }
end
local v = redis.call('HMGET', request, 'generation', 'status', 'spentAt')
-- cure: an unlink belongs to its generation
if v[1] ~= generation or v[2] ~= 'complete' or not v[3] then
  return { 'gone' }
end
-- cure: large keys are unlinked before they expire, 5
if tonumber(v[3]) > now() then
  return { 'kept' }
end
redis.call('UNLINK', request, failed, results)
return { 'unlinked' }
