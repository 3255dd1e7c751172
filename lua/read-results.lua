--- Reads records of the results stream, no more than about a megabyte of them, but at least one. How long they are
--- is not known before, so as many are read at a time as may be had of the longest that was ever written.
--
-- KEYS
--   request  hash    state of the request
--   results  stream  outcomes in the order of settling
-- ARGV
--   from   string  where to begin, as XRANGE has it
--   to     string  where to end
--   count  int     how many at most
-- REPLIES
--   {'read', records...: record}  each as XRANGE answers it; none: there are no others
-- REPEAT  reads only
-- FLAGS no-writes

local request, results = KEYS[1], KEYS[2]
local from, to, count = ARGV[1], ARGV[2], tonumber(ARGV[3])

-- A settle of an earlier version does not say how long its record is.
local longest = tonumber(redis.call('HGET', request, 'longest')) or 65536
local bytes = 0
local reply = { 'read' }
repeat
  local some = math.min(math.max(1, math.floor((1000000 - bytes) / longest)), count + 1 - #reply)
  local records = redis.call('XRANGE', results, from, to, 'COUNT', some)
  for _, record in ipairs(records) do
    reply[#reply + 1] = record
    -- The lengths decide only whether there is room for more.
    if #records == some then
      local length = #table.concat(record[2])
      bytes = bytes + length
      longest = math.max(longest, length)
      from = '(' .. record[1]
    end
  end
until #records < some or #reply > count or bytes >= 1000000
return reply
