--- Ends a tend on the queue side. First it pushes, in any case, what the tend minted. Then, if the claim is still
--- the same, it puts the request to sleep until its tokens are popped or until its next time.
--
-- KEYS
--   open          hash  id -> generation
--   agenda        zset  id -> time of its next attention; 'id~' -> until when it is tended for a change
--   wait          zset  id -> priority * 2^44 + mark; (100 + priority) * 2^44 + due
--   marks         hash  id -> 'epoch' or 'epoch:passedAt'
--   pushed        hash  priority -> tokens ever pushed to its list
--   parked        hash  id -> 'generation task'
--   parkedByTask  zset  'task\0id' of those, all of score 0
--   list          list  tokens of the request's priority; with due, its lane
-- ARGV
--   id          string   of the request
--   generation  int      of the request
--   claim       int      what the tick answered
--   mint        int      tokens to push
--   epoch       int      in which they were counted
--   priority    int      of the request
--   before      string   epoch whose tokens are still out, or ''
--   next        int      time of the next tend, or 0
--   parkedTask  string   '+' and the task when the request is parked, or ''
--   graceMs     int      from a token's pop to its enter at the latest
--   slowMs      int      until a request that has neither a time nor tokens is tended in any case; longer when the
--                        agenda is so long that more than atATime would be tended in slowMs
--   atATime     int      of such requests, in slowMs
--   due         int?     when it was due, of one that is expedited; left out: it is not
--   channel     string?  shard channel of the queue's workers, with due
-- REPLIES
--   {'ok', next: int}  asleep; next: time of its next attention, or 0 when only its tokens wake it
--   {'moved'}     somebody else claimed it since
--   {'closed'}    the id is not open under this generation
-- REPEAT  pushes again (surplus tokens die at enter); the rest is done once, by the claim
-- FLAGS allow-oom

--- @include now, lane, push, parked

local open, agenda, wait, marks, pushed, parked, parkedByTask, list =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local id, generation, claim, mint, epoch, priority, before, next, parkedTask, graceMs, slowMs, atATime =
  ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5], ARGV[6], ARGV[7],
  tonumber(ARGV[8]), ARGV[9], tonumber(ARGV[10]), tonumber(ARGV[11]), tonumber(ARGV[12])
local due, channel = ARGV[13], ARGV[14]

if pushTokens(open, pushed, list, priority, id, generation, epoch, mint, due, channel) == 'closed' then
  return { 'closed' }
end
-- cure: compare-and-set in write-back
if tonumber(redis.call('ZSCORE', agenda, id)) ~= claim then
  return { 'moved' }
end

local at = now()
local mark, waits = redis.call('HGET', marks, id) or '', redis.call('ZSCORE', wait, id)
if before == '' then
  redis.call('HDEL', marks, id)
  redis.call('ZREM', wait, id)
  mark, waits = '', false
elseif mark:match('^%d+') ~= before then
  redis.call('HSET', marks, id, before)
  if due then
    redis.call('ZADD', wait, (100 + priority) * 2 ^ 44 + due, id)
  else
    local ever = tonumber(redis.call('HGET', pushed, priority)) or 0
    redis.call('ZADD', wait, priority * 2 ^ 44 + ever, id)
  end
  mark, waits = before, true
end
if parkedTask ~= '' then
  notePark(parked, parkedByTask, id, generation, parkedTask:sub(2))
else
  noteUnpark(parked, parkedByTask, { id })
end

local passedAt = mark:match(':(%d+)$')
if passedAt then
  local due = passedAt + graceMs
  next = next == 0 and due or math.min(next, due)
end
-- The change that was announced may come after the tend that ends here.
local announced = tonumber(redis.call('ZSCORE', agenda, id .. '~'))
-- cure: a change that is announced is not put off
if announced then
  next = next == 0 and announced or math.min(next, announced)
end
if next == 0 and not waits then
  -- It is paused or parked. Whoever ends that has the request tended.
  next = at + slowMs *
    -- cure: requests that only wait share one pace of tends
    math.max(1, math.floor(redis.call('ZCARD', agenda) / atATime))
end
if next == 0 then
  redis.call('ZREM', agenda, id)
else
  redis.call('ZADD', agenda, math.max(next, at), id)
end
return { 'ok', next }
