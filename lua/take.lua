--- Takes due work (returned, reclaimed, retried) out of `due` for a worker that holds permits.
--
-- KEYS
--   request   hash    state of the request
--   work      stream  its sub-requests
--   due       zset    delayed and returned sub-requests
--   tries     hash    index -> failed attempts; 'index:crashes', 'index:alone', 'index:company'; 'index:checkpoint' -> JSON
-- ARGV
--   generation  int     of the request
--   worker      string  boot id of the worker process
--   max         int     how many at most
-- REPLIES
--   {'ok', maxCrashes, entry, payload, tries, crashes, checkpoint, company, …}  six for each sub-request,
--      perhaps none · checkpoint: the last one that an earlier attempt left, or '' · company: how many
--      ran in its process, itself included, when it last ran as a suspect; 0: it never did
--      One with crashes >= max(1, maxCrashes - 1) is a suspect: run it in smaller company, after `run-alone`
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
local reply = { 'ok', tonumber(redis.call('HGET', request, 'maxCrashes')) or 3 }
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
    local v = redis.call('HMGET', tries, index, index .. ':crashes', index .. ':checkpoint', index .. ':company')
    reply[#reply + 1] = tonumber(v[1]) or 0
    reply[#reply + 1] = tonumber(v[2]) or 0
    reply[#reply + 1] = v[3] or ''
    reply[#reply + 1] = tonumber(v[4]) or 0
    if v[2] then
      -- Whoever ran it alone before does not any more.
      redis.call('HDEL', tries, index .. ':alone')
    end
  end
end
return reply
