--- Takes due work (returned, reclaimed, retried) out of `due` for a worker that holds permits.
--
-- KEYS
--   request   hash    state of the request
--   work      stream  its sub-requests
--   due       zset    delayed and returned sub-requests
--   tries     hash    index -> failed attempts
-- ARGV
--   generation  int     of the request
--   worker      string  boot id of the worker process
--   max         int     how many at most
-- REPLIES
--   {'ok', entry, payload, tries, …}  three for each sub-request, perhaps none
--   {'lost'}  the worker holds no permit
--   {'gone'}  no such life, or complete
-- REPEAT  takes more
-- FLAGS allow-oom

--- @include now, state

local request, work, due, tries = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local generation, worker, max = ARGV[1], ARGV[2], tonumber(ARGV[3])

local state = readState(request, generation)
if not state or state.status == 'complete' then
  return { 'gone' }
end
if redis.call('HEXISTS', request, 'permits:' .. worker) == 0 then
  return { 'lost' }
end
local reply = { 'ok' }
if state.halted or state.status == 'cancelling' then
  return reply
end
for _, id in ipairs(redis.call('ZRANGEBYSCORE', due, '-inf', now(), 'LIMIT', 0, max)) do
  redis.call('ZREM', due, id)
  local entry = redis.call('XCLAIM', work, 'workers', worker, 0, id)[1]
  -- An entry that somebody deleted by hand is dropped from the group by XCLAIM itself.
  if entry then
    reply[#reply + 1] = id
    reply[#reply + 1] = entry[2][2]
    reply[#reply + 1] = tonumber(redis.call('HGET', tries, id:match('%d+$'))) or 0
  end
end
return reply
