--- Notes that a suspect, a sub-request whose next crash would be its last, is about to run and that
--- nothing else runs in this process: only such a crash is held against it for good.
--
-- KEYS
--   request   hash    state of the request
--   work      stream  its sub-requests
--   tries     hash    index -> failed attempts; 'index:crashes' -> crashes; 'index:alone' -> worker
-- ARGV
--   generation  int     of the request
--   worker      string  boot id of the worker process
--   entry       string  the suspect
-- REPLIES
--   {'ok'}    run it
--   {'lost'}  it is not with this worker any more, or the worker holds no permit
--   {'gone'}  no such life, or complete
-- REPEAT  the same reply
-- FLAGS allow-oom

--- @include now, state

local request, work, tries = KEYS[1], KEYS[2], KEYS[3]
local generation, worker, entry = ARGV[1], ARGV[2], ARGV[3]

local state = readState(request, generation)
if not state or state.status == 'complete' then
  return { 'gone' }
end
local permitted = redis.call('HEXISTS', request, 'permits:' .. worker) == 1
if not permitted or not redis.call('XPENDING', work, 'workers', entry, entry, 1, worker)[1] then
  return { 'lost' }
end
redis.call('HSET', tries, entry:match('%d+$') .. ':alone', worker)
return { 'ok' }
