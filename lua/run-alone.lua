--- Notes that suspects (sub-requests whose next crash may be their last) are about to run, and that nothing else
--- runs in this process. How many run together is kept of each: when they crash, the next company is smaller. Only
--- the crash of a suspect that ran alone counts against it for good.
--
-- KEYS
--   request  any     state of the request
--   work     stream  its sub-requests
--   tries    hash    index -> failed attempts; 'index:crashes', 'index:alone' -> worker; 'index:company'
-- ARGV
--   generation  int     of the request
--   worker      string  boot id of the worker process
--   company     int     how many run in this process, those of other requests included
--   entries...  string  the suspects of this request
-- REPLIES
--   {'ok', ends: int}  run them · ends: when the lease ends, server time
--   {'lost'}      one is not with this worker any more, or the worker has no permit
--   {'gone'}      no such generation, or complete
-- REPEAT  the same reply
-- FLAGS allow-oom

--- @include now, digits, compact, state

local request, work, tries = KEYS[1], KEYS[2], KEYS[3]
local generation, worker, company = ARGV[1], ARGV[2], tonumber(ARGV[3])

local state = readState(request, work, generation)
if not state or state.status == 'complete' then
  return { 'gone' }
end
if redis.call('HEXISTS', request, 'permits:' .. worker) == 0 then
  return { 'lost' }
end
for i = 4, #ARGV do
  if not redis.call('XPENDING', work, 'workers', ARGV[i], ARGV[i], 1, worker)[1] then
    return { 'lost' }
  end
end
for i = 4, #ARGV do
  local index = ARGV[i]:match('%d+$')
  -- cure: the company of a crash is remembered
  redis.call('HSET', tries, index .. ':company', company)
  -- cure: no suspect fails by a crash in company
  if company == 1 then
    -- cure: the last crash counts only in isolation, 3
    redis.call('HSET', tries, index .. ':alone', worker)
  end
end
return { 'ok', tonumber(redis.call('HGET', request, 'lease:' .. worker)) or 0 }
