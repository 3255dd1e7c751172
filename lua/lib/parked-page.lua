-- Takes at most `max` requests that are parked with one of `tasks` (' name name ', read in this order; '*' for all) out
-- of the hash and the index, and returns them.
local function takeParked(parked, parkedByTask, tasks, max)
  local entries = {}
  local function read(from, to)
    -- cure: parked requests are reported in pages
    local left = max - #entries
    for _, entry in ipairs(left > 0 and redis.call('ZRANGE', parkedByTask, from, to, 'BYLEX', 'LIMIT', 0, left) or {}) do
      entries[#entries + 1] = entry
    end
  end
  if tasks == '*' then
    read('-', '+')
  else
    for task in tasks:gmatch('%S+') do
      -- cure: a tick reports to a worker only the requests parked for it
      read('[' .. task .. '\0', '(' .. task .. '\1')
    end
  end
  if #entries == 0 then
    return {}
  end
  local ids, found = {}, {}
  for i, entry in ipairs(entries) do
    ids[i] = entry:match('^%Z*%z(.*)$')
  end
  for i, value in ipairs(redis.call('HMGET', parked, unpack(ids))) do
    found[2 * i - 1], found[2 * i] = ids[i], value
  end
  redis.call('HDEL', parked, unpack(ids))
  -- cure: a parked request is reported once
  redis.call('ZREM', parkedByTask, unpack(entries))
  return found
end
