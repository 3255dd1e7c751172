-- How a queue worked in the last hour: a list of intervals of ten seconds, the latest left. Each is a text of eight
-- numbers: its start; how many sub-requests succeeded, failed, were cancelled and were tried again in it; and by the last
-- reports in it, how many handlers ran, how many slots and how many workers there were.
--
-- The JSON of a worker begins with its figures, {"figures":"…", ten numbers: running handlers, slots; succeeded, failed,
-- cancelled and retried since its start; and these four as its last answered report had them. A report counts what it has
-- more than the one before. So one that arrives twice adds nothing, and the next one contains what a lost one had.
-- A report without figures, of another client, counts nothing.

-- At most an hour is kept. Work counts in the last seven intervals, as a worker that is silent for longer is removed.
local INTERVAL_MS, KEPT, OPEN, TTL_MS = 10000, 361, 7, 3660000

local function numbersIn(text)
  local numbers = {}
  for number in (text or ''):gmatch('%d+') do
    numbers[#numbers + 1] = tonumber(number)
  end
  return numbers
end

local function figuresIn(info)
  local figures = numbersIn((info or ''):match('^{"figures":"([%d ]+)"'))
  return #figures == 10 and figures or nil
end

-- How many handlers run, and how many slots and workers there are. Of more than a thousand workers it asks a thousand.
local function fleetOf(workerInfo)
  local running, slots, workers = 0, 0, 0
  local infos = redis.call('HSCAN', workerInfo, 0, 'COUNT', 1000)[2]
  for i = 2, #infos, 2 do
    local its, of = infos[i]:match('^{"figures":"(%d+) (%d+) ')
    if its then
      running, slots, workers = running + its, slots + of, workers + 1
    end
  end
  -- cure: of many workers some are asked
  local asked = math.max(1, #infos / 2) / math.max(1, redis.call('HLEN', workerInfo))
  local function ofAll(number)
    return math.floor(number / asked + 0.5)
  end
  return ofAll(running), ofAll(slots), ofAll(workers)
end

-- Begins the present interval, and those before in which nobody reported: workers do what they said last.
local function beginIntervals(series, workerInfo, present)
  local last = numbersIn(redis.call('LINDEX', series, 0))[1]
  -- One that has just begun stays when the clock goes back a little.
  -- cure: intervals that lie ahead are removed
  while last and last > present + INTERVAL_MS do
    redis.call('LTRIM', series, 1, -1)
    last = numbersIn(redis.call('LINDEX', series, 0))[1]
  end
  if last and last >= present then
    return
  end
  local running, slots, workers = fleetOf(workerInfo)
  local first = last and present - last < OPEN * INTERVAL_MS and last + INTERVAL_MS or present
  local begun = {}
  for start = first, present, INTERVAL_MS do
    begun[#begun + 1] = table.concat({ start, 0, 0, 0, 0, running, slots, workers }, ' ')
  end
  redis.call('LPUSH', series, unpack(begun))
  -- cure: the series of a queue is bounded
  redis.call('LTRIM', series, 0, KEPT - 1)
  redis.call('PEXPIRE', series, TTL_MS)
end

-- Counts the report of a worker. Returns false if a later one has arrived before: then it counts nothing.
local function noteFigures(series, workers, workerInfo, worker, info, at)
  local new = figuresIn(info)
  if not new then
    return true
  end
  local old = figuresIn(redis.call('HGET', workerInfo, worker))
  local known = old and { unpack(old, 3, 6) } or { unpack(new, 7, 10) }
  local more, sum = {}, 0
  for i = 1, 4 do
    more[i] = new[i + 2] - --[[cure: a report counts what it has more than the one before]] known[i]
    sum = sum + more[i]
  end
  -- cure: a report that arrives behind a later one counts nothing
  if sum < 0 then
    return false
  end
  beginIntervals(series, workerInfo, at - at % INTERVAL_MS)
  if old and sum == 0 and new[1] == old[1] and new[2] == old[2] then
    return true
  end
  local from = old and tonumber(redis.call('ZSCORE', workers, worker)) or at
  local page = redis.call('LRANGE', series, 0, math.min(OPEN - 1, math.ceil((at - from) / INTERVAL_MS)))
  local left = { unpack(more) }
  for k = #page, 1, -1 do
    local interval = numbersIn(page[k])
    local workedMs = math.max(0, math.min(interval[1] + INTERVAL_MS, at) - math.max(interval[1], from))
    local part = workedMs / math.max(1, at - from)
    for i = 1, 4 do
      local share = k > 1 and
        -- cure: work is spread over the intervals in which it was done
        math.floor(more[i] * part) or left[i]
      left[i], interval[i + 1] = left[i] - share, interval[i + 1] + share
    end
    if k == 1 then
      interval[6] = interval[6] + new[1] - (old and old[1] or 0)
      interval[7] = interval[7] + new[2] - (old and old[2] or 0)
      interval[8] = interval[8] + (old and 0 or 1)
    end
    local text = table.concat(interval, ' ')
    if text ~= page[k] then
      redis.call('LSET', series, k - 1, text)
    end
  end
  return true
end
