--- Whether a worker at the end of its time slice should leave: somebody of a higher priority waits,
--- or of the same one, that is not this request. A request has at most about 32 tokens outstanding,
--- so 33 tokens at the end where they are popped decide.
--
-- KEYS
--   lists...  list  tokens of the priorities 0 up to that of the request, highest priority first
-- ARGV
--   id  string  of the request that the worker holds
-- REPLIES
--   {'keep'}   nobody waits
--   {'leave'}  somebody waits
-- REPEAT  reads only
-- FLAGS no-writes

local lists = KEYS
local id = ARGV[1]

if #lists > 1 and redis.call('EXISTS', unpack(lists, 1, #lists - 1)) > 0 then
  return { 'leave' }
end
local own = id .. '~'
for _, token in ipairs(redis.call('LRANGE', lists[#lists], -33, -1)) do
  if token:sub(1, #own) ~= own then
    return { 'leave' }
  end
end
return { 'keep' }
