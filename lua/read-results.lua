--- Reads records of the results stream: at most about a megabyte, but at least one. Their lengths are not known
--- before, so it reads as many at a time as would fit if each were as long as the longest that was ever written.
--- Long records are better read by a plain command, because a script makes strings of them, which costs several times
--- as much as sending them: then it only says how many.
--
-- KEYS
--   request  any     state of the request
--   results  stream  outcomes in the order of settling
-- ARGV
--   generation  int     one that the request is known to have reached; 0: none
--   from        string  where to begin, as XRANGE has it
--   to          string  where to end
--   count       int     how many at most
-- REPLIES
--   {'read', records...: record}  each as XRANGE answers it; none: there are no others
--   {'long', most: int, from: text, to: text}  read them by XRANGE from this `from` to this `to`, at most `most`: no record
--      of another life lies there, and what is recorded later may be longer than all that `most` was calculated from
--   {'gone'}  the request that reached this generation is not here, or not any more
-- REPEAT  reads only
-- FLAGS no-writes

--- @include now, digits, compact, life, record-id

local request, results = KEYS[1], KEYS[2]
local generation, from, to, count = tonumber(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4])

-- The only record of a compact request, if it lies between `from` and `to`, as XRANGE answers it: one or none.
local function onlyRecord(c)
  -- Negative, 0 or positive, as the record is before `bound`, there, or behind it. `rest` is the number of a bound that
  -- names a generation alone.
  local function compared(bound, rest)
    local first, second = bound:match('(%d+)-?(%d*)$')
    local difference = c[GENERATION] - first
    return difference == 0 and c[TOTAL] - (tonumber(second) or rest) or difference
  end
  local least = from:sub(1, 1) == '(' and 1 or 0
  if #c[RECORD] == 0 or
    -- cure: the only record is read once
    from ~= '-' and compared(from, 0) < least or
    -- cure: the only record is not read before its place
    to ~= '+' and compared(to, math.huge) > 0 then
    return {}
  end
  return { { positionOf(c), c[RECORD] } }
end

if isCompact(request) then
  local c = readCompact(request)
  if not isOfLife(generation, c[GENERATION], c[GENERATION]) then
    return { 'gone' }
  end
  return { 'read', unpack(onlyRecord(c)) }
end
local v = redis.call('HMGET', request, 'longest', 'kept', 'generation', 'succeeded', 'failed', 'cancelled', 'moved', 'first')
local first = v[8] or v[3]
-- cure: results of another life of the id are not read
if not isOfLife(generation, v[3], first) then
  return { 'gone' }
end
if redis.call('EXISTS', results) == 0 then
  return { 'read' }
end
-- No record is longer than this where the longest is not noted.
local UNNOTED, BYTES = 65536, 1000000
local longest = tonumber(v[1]) or UNNOTED
-- Where a few are much longer than most, so few as fit if all were long would be too few.
if tonumber(v[2] or 0) > math.max(UNNOTED, longest / 4) * redis.call('XLEN', results) then
  local last = recordId({ generation = v[3], settled = v[4] + v[5] + v[6], moved = v[7] or 0 })
  local most = math.max(1, math.floor(BYTES / longest))
  return {
    'long', --[[cure: a read of results is bounded by bytes, 3]] math.min(count, most),
    --[[cure: long results of another life of the id are not read]] from == '-' and first and first .. '-0' or from,
    --[[cure: a read of long results ends where it was calculated]] to == '+' and last or to,
  }
end
local bytes = 0
local reply = { 'read' }
repeat
  local some = math.min(math.max(1, math.floor((BYTES - bytes) / longest)), count + 1 - #reply)
  local records = redis.call('XRANGE', results, from, to, 'COUNT', some)
  for _, record in ipairs(records) do
    reply[#reply + 1] = record
    -- The lengths decide only whether there is room for more.
    if #records == some then
      local length = 0
      for _, text in ipairs(record[2]) do
        length = length + #text
      end
      bytes = bytes + length
      longest = math.max(longest, length)
      from = '(' .. record[1]
    end
  end
until #records < some or #reply > count or --[[cure: a read of results is bounded by bytes]] bytes >= BYTES
return reply
