--- Removes everything of one generation of a request, whatever its state. A short-lived tombstone stays for waiters
--- and late calls. Workers that run its sub-requests learn of the drop at their next call. A drop that comes late
--- leaves the next generation of the id alone.
--
-- KEYS
--   request   any     state of the request
--   work      stream  its sub-requests
--   due       zset    delayed and returned sub-requests
--   tries     hash    index -> failed attempts; 'index:crashes' -> crashes; 'index:alone' -> worker
--   progress  hash    index -> what its handler last reported
--   failed    hash    index -> error; 'index:payload' -> payload
--   results   stream  outcomes in the order of settling
-- ARGV
--   generation   int     that is removed
--   channel      string  shard channel of the request
--   tombstoneMs  int     how long it is remembered that it was dropped
-- REPLIES
--   {'dropped', generation: int, queue: text}  now, or by an earlier call; generation: what to finish, perhaps a
--                                   later one that was refused or came to nothing
--   {'gone'}                        no such generation
-- REPEAT  the same reply
-- FLAGS allow-oom

--- @include now, digits, compact, replace

local request, work, due, tries, progress, failed, results =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local generation, channel, tombstoneMs = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])

makeUsual(request, work, results)
local v = redis.call('HMGET', request, 'generation', 'status', 'queue', 'voided', 'notify')
if not v[1] or v[2] == 'void' then
  return { 'gone' }
end
local known, dropped = tonumber(v[1]), v[2] == 'dropped'
-- A tombstone covers all generations up to its own; a request only for itself.
-- cure: generation on drop
if generation > known or (generation < known and not dropped) then
  return { 'gone' }
end
local last = math.max(known, tonumber(v[4]) or 0)
if not dropped then
  redis.call('UNLINK', work, due, tries, progress, failed, results)
  if mayWriteAgain(work) then
    -- What thousands of workers left in it is freed beside the server's work.
    redis.call('UNLINK', request)
  else
    local fields = {}
    for _, field in ipairs(redis.call('HKEYS', request)) do
      if field ~= 'generation' and field ~= 'status' and field ~= 'queue' then
        fields[#fields + 1] = field
      end
    end
    for i = 1, #fields, 1000 do
      redis.call('HDEL', request, unpack(fields, i, math.min(i + 999, #fields)))
    end
  end
  redis.call('HSET', request, 'generation', last, 'status', 'dropped', 'queue', v[3])
  redis.call('PEXPIRE', request, tombstoneMs)
  redis.pcall('SPUBLISH', channel, last .. ' dropped')
  if v[5] then
    -- cure: whoever submitted a request learns that it was dropped
    redis.pcall('SPUBLISH', v[5], channel .. ' ' .. last .. ' dropped')
  end
end
return { 'dropped', last, v[3] }
