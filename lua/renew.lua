--- Extends the lease of the permits that a worker holds, and keeps what its handlers reported.
--- Never brings permits back that were withdrawn.
--
-- KEYS
--   request   hash  state of the request
--   progress  hash  index -> what its handler last reported
-- ARGV
--   generation  int     of the request
--   worker      string  boot id of the worker process
--   leaseMs     int     how long the permits last from here
--   reports...  string  index, number, … of handlers that reported since
-- REPLIES
--   {'ok', permits}  extended
--   {'cancelling', permits}  extended; the request is being cancelled: abort its handlers
--   {'lost'}         the worker holds no permit: abort its handlers
--   {'gone'}         no such life, or complete
-- REPEAT  extends again
-- FLAGS allow-oom

--- @include now, state

local request, progress = KEYS[1], KEYS[2]
local generation, worker, leaseMs = ARGV[1], ARGV[2], tonumber(ARGV[3])

local state = readState(request, generation)
if not state or state.status == 'complete' then
  return { 'gone' }
end
local permits = redis.call('HGET', request, 'permits:' .. worker)
if not permits then
  return { 'lost' }
end
redis.call('HSET', request, 'lease:' .. worker, now() + leaseMs)
if #ARGV > 3 then
  redis.call('HSET', progress, unpack(ARGV, 4))
end
if state.status == 'cancelling' then
  return { 'cancelling', tonumber(permits) }
end
return { 'ok', tonumber(permits) }
