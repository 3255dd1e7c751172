--- Renews the lease of the producers of an open request.
--
-- KEYS
--   request  any     state of the request
--   work     stream  its sub-requests
-- ARGV
--   generation  int  of the request
-- REPLIES
--   {'ok', total: int, unsettled: int}  still open
--   {'sealed'} {'cancelling'} {'complete'}  no longer open
--   {'gone'}   no such generation
-- REPEAT  renews again
-- FLAGS allow-oom

--- @include now, digits, compact, state

local request, work = KEYS[1], KEYS[2]
local generation = ARGV[1]

local state = readState(request, work, generation)
if not state then
  return { 'gone' }
end
if state.status ~= 'open' then
  return { state.status }
end
-- cure: producer lease, renewed by calls
redis.call('HSET', request, 'producerUntil', now() + redis.call('HGET', request, 'leaseMs'))
return { 'ok', state.total, state.total - state.settled }
