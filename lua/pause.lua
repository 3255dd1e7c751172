--- Pauses a request: no permit is granted and no token minted from here on. What runs may end; a
--- worker keeps no more permits than that, as it learns with its next settle.
--
-- KEYS
--   request   hash    state of the request
-- ARGV
--   generation  int     of the request
-- REPLIES
--   {'paused'}             until `resume`
--   {'cancelling'}         it is being cancelled: there is nothing to pause
--   {'complete', outcome: outcome}  the request is complete
--   {'gone'}               no such life
-- REPEAT  the same reply
-- FLAGS allow-oom

--- @include now, state

local request = KEYS[1]
local generation = ARGV[1]

local state = readState(request, generation)
if not state then
  return { 'gone' }
end
if state.status == 'complete' then
  return { 'complete', redis.call('HGET', request, 'outcome') }
end
if state.status == 'cancelling' then
  return { 'cancelling' }
end
redis.call('HSET', request, 'paused', 1)
return { 'paused' }
