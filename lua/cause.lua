--- Notes why a worker will not renew its lease, for the error of sub-requests that fail by that crash. The caller
--- has seen the process of the worker end, or is a thread beside an event loop that is blocked. Once the process
--- has ended, its handlers have too, and the lease ends at once.
--
-- KEYS
--   request  any     state of the request
--   work     stream  its sub-requests
-- ARGV
--   generation  int     of the request
--   worker      string  boot id of the worker process
--   cause       string  JSON: exitCode, signal, outOfMemory, blockedMs, as far as they are known
--   dead        int     1: its handlers have ended; 0: they may still run
-- REPLIES
--   {'ok'}    noted; counts until the worker renews its lease
--   {'lost'}  the worker has no permit
--   {'gone'}  no such generation, or complete
-- REPEAT  noted again
-- FLAGS allow-oom

--- @include now, digits, compact, state

local request, work = KEYS[1], KEYS[2]
local generation, worker, cause, dead = ARGV[1], ARGV[2], ARGV[3], ARGV[4] == '1'
local leaseField = 'lease:' .. worker

local state = readState(request, work, generation)
if not state or state.status == 'complete' then
  return { 'gone' }
end
if redis.call('HEXISTS', request, 'permits:' .. worker) == 0 then
  return { 'lost' }
end
redis.call('HSET', request, 'cause:' .. worker, state.at .. ' ' .. cause)
if dead then
  local ends = tonumber(redis.call('HGET', request, leaseField)) or 0
  -- cure: the lease of a dead process ends
  redis.call('HSET', request, leaseField, math.min(ends, state.at))
end
return { 'ok' }
