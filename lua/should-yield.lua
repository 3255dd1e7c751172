--- Whether a worker should leave a request for another one: for one of a higher priority at once, for one of the same
--- priority when its turn is over. A request has at most about 32 tokens outstanding, so 33 tokens at the end where
--- they are popped decide. One that is expedited makes way for a higher priority, and for one of its own that was due
--- before it.
--
-- KEYS
--   lists...  list  tokens of the priorities 0 up to that of the request, highest priority first, lanes
--                   that are known to be used among them; of one that is expedited, up to its lane
-- ARGV
--   id          string  of the request that the worker works on
--   generation  int?    of the request, with due
--   due         int?    when it was due, of one that is expedited; left out: it is not
-- REPLIES
--   {'keep'}   nobody waits
--   {'share'}  only others of the same priority wait
--   {'leave'}  somebody waits who goes before this request
-- REPEAT  reads only
-- FLAGS no-writes

--- @include lane

local lists = KEYS
local id, generation, due = ARGV[1], ARGV[2], ARGV[3]

if #lists > 1 and redis.call('EXISTS', unpack(lists, 1, #lists - 1)) > 0 then
  return { 'leave' }
end
local own = id .. '~'
if due then
  local first = redis.call('LINDEX', lists[#lists], -1)
  if not first or first:sub(1, #own) == own then
    return { 'keep' }
  end
  return { goesBefore(tonumber(generation), tonumber(due), first) and 'keep' or 'leave' }
end
for _, token in ipairs(redis.call('LRANGE', lists[#lists], -33, -1)) do
  if token:sub(1, #own) ~= own then
    return { 'share' }
  end
end
return { 'keep' }
