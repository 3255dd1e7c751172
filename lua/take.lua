--- Takes due sub-requests (returned, reclaimed, retried) out of `due` for a worker with permits: at most 250, and
--- at most about a mebibyte of payloads, but at least one. `op` numbers the calls of one worker process upwards, as
--- in enter and settle: a call that arrives twice takes nothing. `answered` as for `enter`: it reveals a server
--- that lost this take or an earlier call.
--
-- KEYS
--   request  any     state of the request
--   work     stream  its sub-requests
--   due      zset    delayed and returned sub-requests
--   tries    hash    index -> failed attempts; 'index:crashes', 'index:alone', 'index:company'; 'index:checkpoint' -> JSON
-- ARGV
--   generation  int     of the request
--   worker      string  boot id of the worker process
--   op          int|''  number of this call; '' when none of this worker can come twice
--   max         int     how many at most
--   answered    int     number of its last call for this request that was answered; 0: none
-- REPLIES
--   {'ok', maxCrashes: int, left: int,
--    entries...: (entry text, payload text, tries int, crashes int, checkpoint text, company int)}
--      six for each sub-request, perhaps none · left: how many others are due; -1: a repeat or a late call, which may not say what its
--      first reply brought · checkpoint: the last one that an earlier attempt left, or '' · company: how many
--      ran in its process, itself included, when it last ran as a suspect; 0: it never did
--      One with crashes >= max(1, maxCrashes - 1) is a suspect: run it in smaller company, after `run-alone`
--   {'lost'}  the worker has no permit
--   {'gone'}  no such generation, or complete
-- REPEAT  'ok' with left -1; nothing is taken
-- FLAGS allow-oom

--- @include now, digits, compact, state, forgotten

local request, work, due, tries = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local generation, worker, op, max, answered =
  ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])

local opField = 'op:' .. worker
local state, permits, lastOp, maxCrashes = readState(request, work, generation, 'permits:' .. worker, opField, 'maxCrashes')
if not state or state.status == 'complete' then
  return { 'gone' }
end
if not permits then
  return { 'lost' }
end
local known = tonumber((lastOp or '0'):match('^%d+'))
noteForgotten(request, tonumber(permits), known, answered)
local reply = { 'ok', tonumber(maxCrashes) or 3, 0 }
if op then
  -- cure: op number in take
  if op <= known then
    reply[3] = -1
    return reply
  end
  -- cure: op number in take, 2
  redis.call('HSET', request, opField, op)
end
if
  -- cure: a paused request grants, mints and hands out nothing, 3
  state.halted or state.status == 'cancelling' then
  return reply
end
local ids, bytes = redis.call('ZRANGEBYSCORE', due, '-inf', state.at, 'LIMIT', 0, math.min(max, 250)), 0
local left = redis.call('ZCOUNT', due, '-inf', state.at)
for _, id in ipairs(ids) do
  -- cure: a take is bounded by bytes
  if bytes >= 1048576 then
    break
  end
  left = left - 1
  redis.call('ZREM', due, id)
  local entry = redis.call('XCLAIM', work, 'workers', worker, 0, id)[1]
  -- An entry that somebody deleted by hand is dropped from the group by XCLAIM itself.
  if entry then
    reply[#reply + 1] = id
    reply[#reply + 1] = entry[2][2]
    local index = id:match('%d+$')
    local kept = redis.call('HMGET', tries, index, index .. ':crashes', index .. ':checkpoint', index .. ':company')
    reply[#reply + 1] = tonumber(kept[1]) or 0
    reply[#reply + 1] = tonumber(kept[2]) or 0
    reply[#reply + 1] = kept[3] or ''
    reply[#reply + 1] = tonumber(kept[4]) or 0
    bytes = bytes + #entry[2][2] + #(kept[3] or '')
    if kept[2] then
      -- The worker that ran it alone before does so no longer.
      -- cure: the record of an isolated run is removed by the next take
      redis.call('HDEL', tries, index .. ':alone')
    end
  end
end
reply[3] = left
return reply
