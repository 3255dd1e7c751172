--- @needs parked
-- Adds requests that an earlier version parked to the index, a page a tick, while the hash is larger than the index.
local function indexSome(parked, parkedByTask, counters)
  local held = redis.pcall('HLEN', parked)
  if type(held) ~= 'number' or held <= redis.call('ZCARD', parkedByTask) then
    return
  end
  local from = redis.call('HGET', counters, 'parkedScan') or '0'
  local page = redis.pcall('HSCAN', parked, from, 'COUNT', 500)
  if page.err then
    return
  end
  for i = 1, #page[2], 2 do
    redis.call('ZADD', parkedByTask, 0, taskIn(page[2][i + 1]) .. '\0' .. page[2][i])
  end
  redis.call('PEXPIRE', parkedByTask, INDEX_KEPT_MS)
  -- The key expires a week after the last request was opened, and may not be created here.
  if redis.call('EXISTS', counters) == 1 then
    redis.call('HSET', counters, 'parkedScan', page[1])
  end
end

-- Reads at most `max` requests that are parked with one of `tasks` (' name name ', read in this order; '*' for all).
-- `after`: the entry of the first task behind which to begin, or ''. Returns the requests, and the entry behind which
-- to continue; '' when these were all.
local function parkedPage(parked, parkedByTask, tasks, after, max)
  local entries = {}
  local function read(from, to)
    -- cure: parked requests are reported in turns, 2
    local left = max - #entries
    for _, entry in ipairs(left > 0 and redis.call('ZRANGE', parkedByTask, from, to, 'BYLEX', 'LIMIT', 0, left) or {}) do
      entries[#entries + 1] = entry
    end
  end
  -- cure: parked requests are reported in turns
  local behind = after ~= '' and '(' .. after
  if tasks == '*' then
    read(behind or '-', '+')
  else
    for task in tasks:gmatch('%S+') do
      -- cure: a tick reports to a worker only the requests parked for it
      read(behind or '[' .. task .. '\0', '(' .. task .. '\1')
      behind = false
    end
  end
  if #entries == 0 then
    return {}, ''
  end
  local ids, found = {}, {}
  for i, entry in ipairs(entries) do
    ids[i] = entry:match('^%Z*%z(.*)$')
  end
  for i, value in ipairs(redis.call('HMGET', parked, unpack(ids))) do
    if value and taskIn(value) .. '\0' .. ids[i] == entries[i] then
      found[#found + 1] = ids[i]
      found[#found + 1] = value
    else
      -- cure: the index of parked requests follows the hash
      redis.call('ZREM', parkedByTask, entries[i])
    end
  end
  return found, #entries == max and entries[max] or ''
end
