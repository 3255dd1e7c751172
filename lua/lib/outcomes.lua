-- What a worker says of the sub-requests that it ran. Success counts from whoever gets XACK = 1,
-- also from a worker that lost its lease. Failure and give-back count only from the current owner,
-- because XACK itself does not look whose entry it is.
local function owns(work, worker, id)
  return redis.call('XPENDING', work, 'workers', id, id, 1, worker)[1]
end

-- Back to the pool: the entry goes to the reserved consumer '~' and into `due`, never one alone.
-- `deliveries` is written absolutely, so that an entry that was read but not started costs nothing.
local function park(work, due, id, readyAt, deliveries)
  redis.call('XCLAIM', work, 'workers', '~', 0, id, 'RETRYCOUNT', deliveries, 'JUSTID')
  redis.call('ZADD', due, readyAt, id)
end

local function succeed(keys, state, id, index, value, records)
  if redis.call('XACK', keys.work, 'workers', id) == 0 then
    return
  end
  if keys.anyDue then
    redis.call('ZREM', keys.due, id)
  end
  state.succeeded = state.succeeded + 1
  if state.keepResults then
    records[#records + 1] = index
    records[#records + 1] = value
  end
end

local function fail(keys, state, worker, id, index, failure, delayMs, at, records)
  local owned = owns(keys.work, worker, id)
  if not owned then
    return
  end
  if state.status == 'cancelling' then
    redis.call('XACK', keys.work, 'workers', id)
    state.cancelled = state.cancelled + 1
    return
  end
  local tried = redis.call('HINCRBY', keys.tries, index, 1)
  if tried < state.attempts then
    return park(keys.work, keys.due, id, at + delayMs, owned[4])
  end
  local entry = redis.call('XRANGE', keys.work, id, id)[1]
  redis.call('XACK', keys.work, 'workers', id)
  redis.call('HDEL', keys.tries, index)
  redis.call('HSET', keys.failed, index, failure, index .. ':payload', entry and entry[2][2] or '')
  state.failed = state.failed + 1
  records[#records + 1] = '!' .. index
  records[#records + 1] = tried
end

local function giveBack(keys, worker, id)
  local owned = owns(keys.work, worker, id)
  if owned then
    park(keys.work, keys.due, id, 0, owned[4] - 1)
  end
end
