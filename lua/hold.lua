--- Holds a request: until then no permit is granted, no token minted and nothing read of it. What runs continues. A
--- hold never shortens a longer one.
--
-- KEYS
--   request  any     state of the request
--   work     stream  its sub-requests
-- ARGV
--   generation  int     of the request
--   holdMs      int     how long from now
--   reason      string  'memory': its results lack room; '': a handler asked for it
-- REPLIES
--   {'held', until: int}  server time at which it continues, unless it is held for longer
--   {'complete', outcome: outcome}  there is nothing to hold
--   {'gone'}         no such generation
-- REPEAT  holds for as long from then on
-- FLAGS allow-oom

--- @include now, digits, compact, state, terms

local request, work = KEYS[1], KEYS[2]
local generation, holdMs, reason = ARGV[1], tonumber(ARGV[2]), ARGV[3]

local state = readState(request, work, generation)
if not state then
  return { 'gone' }
end
if state.status == 'complete' then
  return { 'complete', (endOf(request, work)) }
end
local known = endsHold(request, state.heldUntil, redis.call('HGET', request, 'heldFor'), state.at)
-- cure: a hold is never made shorter
local heldUntil = math.max(known, state.at + holdMs)
if heldUntil > known then
  -- cure: a hold is not believed beyond its length
  redis.call('HSET', request, 'heldFor', heldUntil .. ' ' .. holdMs .. ' ' .. reason)
end
-- cure: the end of a hold is on the agenda, 2
redis.call('HSET', request, 'heldUntil', heldUntil)
return { 'held', heldUntil }
