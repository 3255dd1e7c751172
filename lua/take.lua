--- Takes due work (returned, reclaimed, retried) out of `due` for a worker that holds permits. `op` and
--- `answered` as for `enter`: a server that lost this take, or what went before it, is found out.
--
-- KEYS
--   request   hash    state of the request
--   work      stream  its sub-requests
--   due       zset    delayed and returned sub-requests
--   tries     hash    index -> failed attempts; 'index:crashes', 'index:alone'; 'index:checkpoint' -> JSON
-- ARGV
--   generation  int     of the request
--   worker      string  boot id of the worker process
--   max         int     how many at most
--   op          int     number of this call; 0: none
--   answered    int     number of its last call for this request that was answered; 0: none
-- REPLIES
--   {'ok', maxCrashes, entry, payload, tries, crashes, checkpoint, …}  five for each sub-request, perhaps
--      none · checkpoint: the last one that an earlier attempt left, or ''
--      One with crashes >= max(1, maxCrashes - 1) is a suspect: run it alone, after `run-alone`
--   {'lost'}  the worker holds no permit
--   {'gone'}  no such life, or complete
-- REPEAT  takes more
-- FLAGS allow-oom

--- @include now, state, forgotten

local request, work, due, tries = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local generation, worker, max, op, answered =
  ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local opField = 'op:' .. worker

local state = readState(request, generation)
if not state or state.status == 'complete' then
  return { 'gone' }
end
local held = redis.call('HMGET', request, 'permits:' .. worker, opField, 'maxCrashes')
if not held[1] then
  return { 'lost' }
end
local known = tonumber((held[2] or '0'):match('^%d+'))
noteForgotten(request, tonumber(held[1]), known, answered)
if op > known then
  redis.call('HSET', request, opField, op)
end
local reply = { 'ok', tonumber(held[3]) or 3 }
if state.halted or state.status == 'cancelling' then
  return reply
end
for _, id in ipairs(redis.call('ZRANGEBYSCORE', due, '-inf', state.at, 'LIMIT', 0, max)) do
  redis.call('ZREM', due, id)
  local entry = redis.call('XCLAIM', work, 'workers', worker, 0, id)[1]
  -- An entry that somebody deleted by hand is dropped from the group by XCLAIM itself.
  if entry then
    reply[#reply + 1] = id
    reply[#reply + 1] = entry[2][2]
    local index = id:match('%d+$')
    local v = redis.call('HMGET', tries, index, index .. ':crashes', index .. ':checkpoint')
    reply[#reply + 1] = tonumber(v[1]) or 0
    reply[#reply + 1] = tonumber(v[2]) or 0
    reply[#reply + 1] = v[3] or ''
    if v[2] then
      -- Whoever ran it alone before does not any more.
      redis.call('HDEL', tries, index .. ':alone')
    end
  end
end
return reply
