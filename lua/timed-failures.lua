--- Reads discarded items of a timed set in the order of their ends, or the other way: at most about a megabyte, but at least one.
--
-- KEYS
--   failures  stream  what was discarded
-- ARGV
--   from   string  where to begin, as XRANGE has it, or XREVRANGE
--   count  int     how many at most
--   order  string  'oldest' or 'newest' first
-- REPLIES
--   {'read', records...: record}  each as XRANGE answers it; none: there are no others
-- REPEAT  reads only
-- FLAGS no-writes

local failures = KEYS[1]
local from, count, order = ARGV[1], tonumber(ARGV[2]), ARGV[3]

-- How long they are is not known before, so they are read one by one.
local bytes = 0
local reply = { 'read' }
while #reply <= count and --[[cure: a read of discarded items is bounded by bytes]] bytes < 1000000 do
  local record = (order == 'newest' and redis.call('XREVRANGE', failures, from, '-', 'COUNT', 1)
    or redis.call('XRANGE', failures, from, '+', 'COUNT', 1))[1]
  if not record then
    break
  end
  reply[#reply + 1] = record
  for _, text in ipairs(record[2]) do
    bytes = bytes + #text
  end
  from = '(' .. record[1]
end
return reply
