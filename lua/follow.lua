--- Notes that somebody follows the results of a running request: from now on, and until `forMs` from now, an outcome
--- is settled without waiting for others (`settle` and `enter` answer `live`).
--
-- KEYS
--   request  any     state of the request
--   work     stream  its sub-requests
-- ARGV
--   generation  int  of the request
--   forMs       int  how long from now; at most 10 s count
-- REPLIES
--   {'noted'}
--   {'complete'}  there is nothing to follow
--   {'gone'}      no such generation
-- REPEAT  'noted', for as long from then on
-- FLAGS

--- @include now, digits, compact, state

local request, work = KEYS[1], KEYS[2]
local generation, forMs = ARGV[1], tonumber(ARGV[2])

local state = readState(request, work, generation)
if not state then
  return { 'gone' }
end
if state.status == 'complete' then
  return { 'complete' }
end
redis.call('HSET', request, 'followedUntil', state.at + forMs)
return { 'noted' }
