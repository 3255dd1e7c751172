-- What a tend reads of the workers of a request. Of a few hundred workers it reads everything. Of more it reads a page:
-- the leases, numbers and crashes among some 1,000 fields, with what else the state says of those workers; and the
-- owners of the next 200 entries in flight, as a worker that read late is named by no field at all.
-- `cursor` (the field `looked`) says where the tend before stopped: 'cursor nextLease entry'. `names` is nil when all
-- were read.
local function readWorkers(request, work, cursor)
  -- cure: the first lease of all pages counts
  if redis.call('HLEN', request) <= 2000 then
    return { fields = redis.call('HGETALL', request) }
  end
  local from, nextLease, entry = (cursor or ''):match('^(%d+) (%S+) (%S+)$')
  local found = redis.call('HSCAN', request,
    -- cure: a tend reads thousands of workers in pages
    from or 0, 'MATCH', '[loc]*:*', 'COUNT', 1000)
  local page = { fields = found[2], names = {}, from = from or '0', to = found[1], entry = '-' }
  page.nextLease = tonumber(nextLease) or math.huge
  local known, wanted = {}, {}
  local function also(name)
    if not known[name] then
      known[name] = true
      page.names[#page.names + 1] = name
      for _, kind in ipairs({ 'permits:', 'term:', 'crashed:', 'cause:' }) do
        wanted[#wanted + 1] = kind .. name
      end
    end
  end
  for i = 1, #page.fields, 2 do
    local name = page.fields[i]:match('^%a+:(.+)$')
    also(name)
  end
  local inFlight = redis.call('XPENDING', work, 'workers', entry or '-', '+', 200)
  for _, pending in ipairs(inFlight) do
    -- cure: a worker that no field names is found
    if pending[2] ~= '~' then
      also(pending[2])
    end
  end
  if #inFlight == 200 then
    -- cure: a worker that no field names is found, 2
    page.entry = '(' .. inFlight[200][1]
  end
  for i = 1, #wanted, 1000 do
    local values = redis.call('HMGET', request, unpack(wanted, i, math.min(i + 999, #wanted)))
    for j = 1, #values do
      if values[j] then
        page.fields[#page.fields + 1] = wanted[i + j - 1]
        page.fields[#page.fields + 1] = values[j]
      end
    end
  end
  return page
end

-- Notes where the next tend continues: at the same page while there is `more` to do in it. Returns when it is due: at
-- once, until all pages were read, and then when the first of all leases ends.
local function nextPage(request, page, cursor, more, nextLease, at)
  if not page.names then
    if cursor then
      -- cure: the place of a page is forgotten
      redis.call('HDEL', request, 'looked')
    end
    return nextLease
  end
  local to = more and page.from or page.to
  -- cure: the first lease of all pages counts, 2
  local first = more and page.nextLease or math.min(page.nextLease, nextLease)
  local over = to == '0' and not more
  local kept = over and 'none' or first < math.huge and ('%.1f'):format(first) or 'none'
  redis.call('HSET', request, 'looked', to .. ' ' .. kept .. ' ' .. page.entry)
  -- cure: a tend reads thousands of workers in pages, 2
  return over and first or at + 1
end
