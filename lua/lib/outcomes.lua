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
local function succeed(keys, state, id, index, value, records)
  local owned = redis.call('XPENDING', keys.work, 'workers', id, id, 1)[1]
  if owned and owned[2] ~= keys.worker and owned[2] ~= '~' then
    redis.call('HSET', keys.request, 'contested', 1)
  end
  if redis.call('XACK', keys.work, 'workers', id) == 0 then
    return
  end
  -- As long as nothing is held, it was not either.
  if keys.held > 0 then
    keys.unparked[#keys.unparked + 1] = id
  end
  state.succeeded = state.succeeded + 1
  if state.keepResults then
    records[#records + 1] = index
    records[#records + 1] = value
  end
end

-- How far the group has read: the greatest index that was ever delivered.
local function lastRead(work)
  local group = redis.call('XINFO', 'GROUPS', work)[1]
  for i = 1, #group, 2 do
    if group[i] == 'last-delivered-id' then
      return tonumber(group[i + 1]:match('%d+$'))
    end
  end
end

-- Successes that are all still this worker's: index, result, … from argument `first` to `last`.
-- Returns the greatest index. XACK counts, as ever. Fewer are acknowledged only where Redis lost
-- writes: what it does not know to have been read will be read again, and is recorded then.
local function succeedTogether(keys, state, first, last, records, ended, pinned)
  local prefix, ids, newest = state.generation .. '-', {}, -1
  for i = first, last, 2 do
    local index = ARGV[i]
    ids[#ids + 1] = prefix .. index
    newest = math.max(newest, tonumber(index))
    if ended then
      ended[#ended + 1] = index
    end
  end
  if #ids == 0 then
    return newest
  end
  local acknowledged = redis.call('XACK', keys.work, 'workers', unpack(ids))
  state.succeeded = state.succeeded + acknowledged
  if pinned and acknowledged == #ids then
    redis.call('XDEL', keys.work, unpack(ids))
  end
  if state.keepResults and acknowledged > 0 then
    local known = acknowledged == #ids and newest or lastRead(keys.work)
    for i = first, last, 2 do
      if tonumber(ARGV[i]) <= known then
        records[#records + 1] = ARGV[i]
        records[#records + 1] = ARGV[i + 1]
      end
    end
  end
  return newest
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
    return park(keys, id, at + delayMs, owned[4])
  end
  local entry = redis.call('XRANGE', keys.work, id, id)[1]
  local crashes = redis.call('HGET', keys.tries, index .. ':crashes') or 0
  redis.call('XACK', keys.work, 'workers', id)
  for _, field in ipairs({ index, index .. ':crashes', index .. ':alone', index .. ':checkpoint' }) do
    keys.tried[#keys.tried + 1] = field
  end
  redis.call('HSET', keys.failed, index, failure, index .. ':payload', entry and entry[2][2] or '',
    index .. ':runs', state.generation .. ' ' .. tried .. ' ' .. crashes)
  state.failed = state.failed + 1
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
