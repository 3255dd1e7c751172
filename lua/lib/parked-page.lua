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
    found[2 * i - 1], found[2 * i] = ids[i], value
  end
  return found, #entries == max and entries[max] or ''
end
