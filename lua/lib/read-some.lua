-- Reads up to `count` sub-requests that nobody has read, and no more than about a mebibyte of them, but at least
-- one. How long they are is not known before; `largest` is the length of the longest payload that was ever
-- appended, so as many are read at a time as may be had of those.
-- Comes after writes, so it throws only if the server or the user cannot read. Answers them, and whether it stopped
-- because they are long.
local READ_BYTES = 1048576
local function readSome(work, worker, count, largest)
  local longest, found, bytes = math.max(4096, tonumber(largest)), {}, 0
  repeat
    local some = math.min(math.max(1, math.floor((READ_BYTES - bytes) / longest)), count - #found)
    local streams = redis.pcall('XREADGROUP', 'GROUP', 'workers', worker, 'COUNT', some, 'STREAMS', work, '>')
    -- Without that command, or the right to it, it would never get any, and never say so: here the call throws.
    if streams and streams.err and
      (streams.err:find('^NOPERM') or streams.err:find("can't run", 1, true) or streams.err:find('^ERR Unknown')) then
      redis.call('XREADGROUP', 'GROUP', 'workers', worker, 'COUNT', some, 'STREAMS', work, '>')
    end
    local rows = streams and not streams.err and streams[1][2] or {}
    -- Most often all come at once, and nothing is left to be measured.
    if some == count then
      return rows, false
    end
    for _, entry in ipairs(rows) do
      found[#found + 1] = entry
      bytes = bytes + #entry[2][2]
    end
  until #rows < some or #found >= count or --[[cure: a settle reads by bytes]] bytes >= READ_BYTES
  return found, #found < count and bytes >= READ_BYTES
end
