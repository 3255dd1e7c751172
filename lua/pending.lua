--- Reads which workers have sub-requests of a request, and which.
--
-- KEYS
--   request  any     state of the request
--   work     stream  its sub-requests
-- ARGV
--   worker   string  boot id of the worker whose sub-requests are wanted; '': how many each worker has
--   from     int     index from which on
--   count    int     how many at most
--   leastMs  int     only those that it has had for at least so long
-- REPLIES
--   {'ok', workers: pairs, entries...: (entry text, forMs int)}
--      workers: boot id, how many it has, …; none where one is asked for · entries: in the order of their indexes · forMs:
--      for how long it has had it; renewals do not change that
--   {'gone'}  no such request, or it is complete
-- REPEAT  reads only
-- FLAGS no-writes

--- @include now, digits, compact

local request, work = KEYS[1], KEYS[2]
local worker, from, count, leastMs = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])

-- Of a compact request one worker has all, or nobody has any.
local function ofCompact(c)
  local total, holder, completedAt = c[TOTAL], c[WORKER], c[COMPLETED_AT]
  if completedAt > 0 then
    return { 'gone' }
  elseif holder == '' or worker ~= '' and holder ~= worker then
    return { 'ok', {} }
  elseif worker == '' then
    return { 'ok', { holder, digits(total) } }
  end
  local reply, forMs = { 'ok', {} }, math.max(0, now() - c[SINCE])
  for index = from, math.min(total, from + count) - 1 do
    if forMs >= leastMs then
      reply[#reply + 1], reply[#reply + 2] = c[GENERATION] .. '-' .. digits(index), forMs
    end
  end
  return reply
end

if isCompact(request) then
  return ofCompact(readCompact(request))
end
local generation = redis.call('HGET', request, 'generation')
local pending = generation and redis.pcall('XPENDING', work, 'workers')
if pending and pending.err and not pending.err:find('^NOGROUP') then
  -- The user or the server lacks the command: throws with the line, from which the caller knows the command.
  redis.call('XPENDING', work, 'workers')
end
if not pending or pending.err then
  return { 'gone' }
end
if worker == '' then
  local workers = {}
  for _, consumer in ipairs(pending[4] or {}) do
    -- cure: an entry that no worker owns is not running
    if consumer[1] ~= '~' then
      workers[#workers + 1], workers[#workers + 2] = consumer[1], consumer[2]
    end
  end
  return { 'ok', workers }
end
local reply, first = { 'ok', {} }, generation .. '-' .. digits(from)
for _, row in ipairs(redis.call('XPENDING', work, 'workers', 'IDLE', leastMs, first, '+', count, worker)) do
  reply[#reply + 1], reply[#reply + 2] = row[1], row[3]
end
return reply
