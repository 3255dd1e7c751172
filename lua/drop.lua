--- Removes everything of a request, whatever its state, but a short-lived tombstone that tells
--- waiters and late calls. Workers that run its sub-requests learn it at their next call.
--
-- KEYS
--   request   hash    state of the request
--   work      stream  its sub-requests
--   due       zset    delayed and returned sub-requests
--   tries     hash    index -> failed attempts; 'index:crashes' -> crashes; 'index:alone' -> worker
--   progress  hash    index -> what its handler last reported
--   failed    hash    index -> error; 'index:payload' -> payload
--   results   stream  outcomes in the order of settling
-- ARGV
--   channel      string  shard channel of the request
--   tombstoneMs  int     how long it is remembered that it was dropped
-- REPLIES
--   {'dropped', generation, queue}  now, or by an earlier call
--   {'gone'}                        no such request
-- REPEAT  the same reply
-- FLAGS allow-oom

local request, work, due, tries, progress, failed, results =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local channel, tombstoneMs = ARGV[1], tonumber(ARGV[2])

local v = redis.call('HMGET', request, 'generation', 'status', 'queue', 'voided')
if not v[1] or v[2] == 'void' then
  return { 'gone' }
end
local generation = math.max(tonumber(v[1]), tonumber(v[4]) or 0)
if v[2] ~= 'dropped' then
  redis.call('HSET', request, 'generation', generation, 'status', 'dropped')
  for _, field in ipairs(redis.call('HKEYS', request)) do
    if field ~= 'generation' and field ~= 'status' and field ~= 'queue' then
      redis.call('HDEL', request, field)
    end
  end
  redis.call('PEXPIRE', request, tombstoneMs)
  redis.pcall('SPUBLISH', channel, generation .. ' dropped')
  redis.call('UNLINK', work, due, tries, progress, failed, results)
end
return { 'dropped', generation, v[3] }
