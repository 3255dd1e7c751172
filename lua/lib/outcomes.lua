--- @host ARGV
-- What a worker says of the sub-requests that it ran. Success counts from whoever gets XACK = 1,
-- also from a worker that lost its lease. Failure and give-back count only from the current owner,
-- because XACK itself does not look whose entry it is. What leaves `due` and `tries` is collected
-- and taken out by the caller in the end, as a key that became empty must not be touched again.
local function owns(work, worker, id)
  return redis.call('XPENDING', work, 'workers', id, id, 1, worker)[1]
end

-- Back to the pool: the entry goes to the reserved consumer '~' and into `due`, never one alone.
-- `deliveries` is written absolutely, so that an entry that was read but not started costs nothing.
local function park(keys, id, readyAt, deliveries)
  redis.call('XCLAIM', keys.work, 'workers', '~', 0, id, 'RETRYCOUNT', deliveries, 'JUSTID')
  keys.held = keys.held + redis.call('ZADD', keys.due, readyAt, id)
end

-- In a request that is being cancelled, what did not succeed counts as cancelled.
local function cancelOwned(keys, state, id)
  redis.call('XACK', keys.work, 'workers', id)
  state.cancelled = state.cancelled + 1
end

-- `contested`: the success of a worker that lost its lease takes an entry from the one that has it now.
-- From then on nobody is believed to have all that it reports.
-- Returns whether it counts.
local function succeed(keys, state, id)
  local owned = redis.call('XPENDING', keys.work, 'workers', id, id, 1)[1]
  if owned and owned[2] ~= keys.worker and owned[2] ~= '~' then
    redis.call('HSET', keys.request, 'contested', 1)
  end
  if redis.call('XACK', keys.work, 'workers', id) == 0 then
    return false
  end
  -- As long as nothing is held, it was not either.
  if keys.held > 0 then
    keys.unparked[#keys.unparked + 1] = id
  end
  state.succeeded = state.succeeded + 1
  return true
end

-- How far the group has read: the greatest index that was ever delivered; -1: none.
local function lastRead(work)
  local group = redis.call('XINFO', 'GROUPS', work)[1]
  for i = 1, #group, 2 do
    if group[i] == 'last-delivered-id' then
      return group[i + 1] == '0-0' and -1 or tonumber(group[i + 1]:match('%d+$'))
    end
  end
end

-- Refuses those of `places` (index -> place) that the latest settles of this life have recorded, `count` at most.
local function refuseRecorded(keys, state, places, count, refused)
  local function look(index)
    if places[index] then
      refused[places[index]] = ''
      places[index] = nil
      count = count - 1
    end
  end
  local to = '+'
  for _ = 1, 64 do
    local page = redis.call('XREVRANGE', keys.results, to, state.generation .. '-0', 'COUNT', 16)
    for _, entry in ipairs(page) do
      for i = 1, #entry[2], 2 do
        look(entry[2][i]:match('^!(%d+)$'))
        for index in (entry[2][i] == 'ok' and entry[2][i + 1] or ''):gmatch('\30(%d+) ') do
          look(index)
        end
      end
    end
    if count <= 0 or #page < 16 then
      return
    end
    to = '(' .. page[16][1]
  end
end

-- Successes that are all still this worker's: their entries are the arguments from `first` to `last`.
-- XACK counts, as ever. Fewer are acknowledged where somebody settled what this worker holds, who was not
-- asked about it, as by the scripts of an older version on a server that lost writes. What was recorded is not
-- recorded again; what the server does not know to have been read will be read again, and is recorded
-- then. From then on each is asked for. Returns what is refused, as recordSuccesses wants it.
local function succeedTogether(keys, state, first, last, pinned)
  if last < first then
    return nil
  end
  local acknowledged = redis.call('XACK', keys.work, 'workers', unpack(ARGV, first, last))
  state.succeeded = state.succeeded + acknowledged
  if acknowledged == last - first + 1 then
    if pinned then
      redis.call('XDEL', keys.work, unpack(ARGV, first, last))
    end
    return nil
  end
  redis.call('HSET', keys.request, 'contested', 1)
  local known, refused, places, count = acknowledged > 0 and lastRead(keys.work) or -1, {}, {}, 0
  for i = first, last do
    local index = ARGV[i]:match('%d+$')
    if tonumber(index) > known then
      refused[i - first + 1] = ''
    else
      places[index] = i - first + 1
      count = count + 1
    end
  end
  if count > acknowledged and state.keepResults then
    refuseRecorded(keys, state, places, count - acknowledged, refused)
  end
  return refused
end

-- All results of one settling are one text, which is recorded as it came: a record separator, which no
-- JSON can hold, before the index and the result of each. `refused`: '' at the place of each that does
-- not count, which is taken out; nil when all count.
local function recordSuccesses(state, values, refused, records)
  if not state.keepResults then
    return
  end
  if refused then
    local place = 0
    values = values:gsub('\30[^\30]*', function()
      place = place + 1
      return refused[place]
    end)
  end
  if values ~= '' then
    records[#records + 1] = 'ok'
    records[#records + 1] = values
    state.kept = state.kept + #values
  end
end

local function fail(keys, state, worker, id, index, failure, delayMs, at, records)
  local owned = owns(keys.work, worker, id)
  if not owned then
    return
  end
  if state.status == 'cancelling' then
    return cancelOwned(keys, state, id)
  end
  local tried = redis.call('HINCRBY', keys.tries, index, 1)
  if tried < state.attempts and delayMs >= 0 then
    -- Also a delay of 0 is a time that lies ahead when the clock goes back.
    state.longestDelayMs = state.longestDelayMs
      or tonumber(redis.call('HGET', keys.request, 'longestDelayMs')) or -1
    if delayMs > state.longestDelayMs then
      state.longestDelayMs = delayMs
      redis.call('HSET', keys.request, 'longestDelayMs', delayMs)
    end
    return park(keys, id, at + delayMs, owned[4])
  end
  local entry = redis.call('XRANGE', keys.work, id, id)[1]
  local crashes = redis.call('HGET', keys.tries, index .. ':crashes') or 0
  redis.call('XACK', keys.work, 'workers', id)
  for _, field in ipairs({ index, index .. ':crashes', index .. ':alone', index .. ':company', index .. ':checkpoint' }) do
    keys.tried[#keys.tried + 1] = field
  end
  redis.call('HSET', keys.failed, index, failure, index .. ':payload', entry and entry[2][2] or '',
    index .. ':runs', state.generation .. ' ' .. tried .. ' ' .. crashes)
  state.failed = state.failed + 1
  state.kept = state.kept + #failure + (entry and #entry[2][2] or 0)
  records[#records + 1] = '!' .. index
  records[#records + 1] = tried
end

local function giveBack(keys, state, worker, id)
  local owned = owns(keys.work, worker, id)
  if not owned then
    return
  end
  if state.status == 'cancelling' then
    return cancelOwned(keys, state, id)
  end
  park(keys, id, 0, owned[4] - 1)
end
