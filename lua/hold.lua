--- Holds a request back: until then no permit is granted, no token minted and nothing read of it; what
--- runs goes on. A longer hold that is there already stays.
--
-- KEYS
--   request   hash    state of the request
-- ARGV
--   generation  int  of the request
--   holdMs      int  for how long from here
-- REPLIES
--   {'held', until: int}  server time at which it goes on, if nobody holds it for longer
--   {'complete', outcome: outcome}  there is nothing to hold
--   {'gone'}         no such life
-- REPEAT  holds for as long from then on
-- FLAGS allow-oom

--- @include now, state, terms

local request = KEYS[1]
local generation, holdMs = ARGV[1], tonumber(ARGV[2])

local state = readState(request, generation)
if not state then
  return { 'gone' }
end
if state.status == 'complete' then
  return { 'complete', redis.call('HGET', request, 'outcome') }
end
local known = endsHold(request, state.heldUntil, redis.call('HGET', request, 'heldFor'), state.at)
local heldUntil = math.max(known, state.at + holdMs)
if heldUntil > known then
  redis.call('HSET', request, 'heldFor', heldUntil .. ' ' .. holdMs)
end
redis.call('HSET', request, 'heldUntil', heldUntil)
return { 'held', heldUntil }
