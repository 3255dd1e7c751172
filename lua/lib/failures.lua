--- @needs reported, failed
--- @host ARGV
-- A failure and the return of a sub-request count only from the present owner of the entry, because XACK itself does
-- not check whose entry it is. What leaves `tries` is collected and removed by the script in the end, as a key that
-- became empty must not be touched again.
local function owns(work, worker, id)
  return redis.call('XPENDING', work, 'workers', id, id, 1, --[[cure: owner check on failure]] worker)[1]
end

-- Returns an entry: it goes to the reserved consumer '~' and into `due`, never to one of them alone.
-- `deliveries` is written absolutely, so that an entry that was read but not started costs nothing.
local function returnEntry(batch, id, readyAt, deliveries)
  -- cure: delayed work under the reserved consumer
  redis.call('XCLAIM', batch.work, 'workers', '~', 0, id, 'RETRYCOUNT', deliveries, 'JUSTID')
  batch.inDue = batch.inDue + redis.call('ZADD', batch.due, readyAt, id)
end

-- The pending entry of a sub-request that did not succeed; nil when this worker does not own it. While the request is
-- being cancelled, the sub-request counts as cancelled instead. `cost`: of the attempt, whatever becomes of it.
local function ownedUnlessCancelled(batch, state, id, cost)
  local owned = owns(batch.work, batch.worker, id)
  if --[[cure: a cost counts from the owner]] owned then
    batch.costs[#batch.costs + 1] = cost
  end
  -- cure: cancel of returned sub-requests
  if owned and state.status == 'cancelling' then
    redis.call('XACK', batch.work, 'workers', id)
    state.cancelled = state.cancelled + 1
    return nil
  end
  return owned
end

-- Keeps the longest delay that was ever asked for. A delay of 0 counts too: its end may lie ahead when the clock goes
-- back.
local function noteDelay(batch, state, delayMs)
  state.longestDelayMs = state.longestDelayMs
    or tonumber(redis.call('HGET', batch.request, 'longestDelayMs')) or
      -- cure: a delay of nothing has its length too
      -1
  if delayMs > state.longestDelayMs then
    state.longestDelayMs = delayMs
    -- cure: the delay of a retry is not believed beyond the longest, 2
    redis.call('HSET', batch.request, 'longestDelayMs', delayMs)
  end
end

-- Settles a sub-request as failed, with its payload, so that it can be redriven.
local function settleAsFailed(batch, state, id, index, failure, tried)
  local entry = redis.call('XRANGE', batch.work, id, id)[1]
  local crashes = redis.call('HGET', batch.tries, index .. ':crashes') or 0
  redis.call('XACK', batch.work, 'workers', id)
  for _, field in ipairs({ index, index .. ':crashes', index .. ':alone', index .. ':company', index .. ':checkpoint' }) do
    batch.tried[#batch.tried + 1] = field
  end
  noteFailed(batch.failed, state, index, failure, entry and entry[2][2] or '', tried, crashes)
  state.failed = state.failed + 1
  batch.records[#batch.records + 1] = '!' .. index
  batch.records[#batch.records + 1] = tried
end

-- Counts a failed attempt: the next one follows after `delayMs`, or the sub-request has failed. A `delayMs` of -1 says
-- that there is to be no other attempt.
local function fail(batch, state, id, index, failure, delayMs, cost)
  local owned = ownedUnlessCancelled(batch, state, id, cost)
  if not owned then
    return
  end
  -- cure: attempts counted apart from deliveries
  local tried = redis.call('HINCRBY', batch.tries, index, 1)
  state.attempts = state.attempts or tonumber(redis.call('HGET', batch.request, 'attempts'))
  if tried < state.attempts and --[[cure: no further attempt when there is to be none]] delayMs >= 0 then
    noteDelay(batch, state, delayMs)
    return returnEntry(batch, id, state.at + delayMs, owned[4])
  end
  settleAsFailed(batch, state, id, index, failure, tried)
end

-- Takes back a sub-request that was read or started, but not finished. It counts as no attempt.
local function giveBack(batch, state, id, cost)
  local owned = ownedUnlessCancelled(batch, state, id, cost)
  if owned then
    returnEntry(batch, id, 0, owned[4] - 1)
  end
end

-- Applies the failures and returns: the arguments from `first` to `last`, four each. Those of a late call count as nothing.
-- Returns whether any were applied.
-- `costs`: of all outcomes, theirs behind those of so many `successes`.
local function settleOthers(batch, state, first, last, costs, successes, late)
  local gaveBack = false
  for i = first, last, 4 do
    local index, kind, cost = ARGV[i], ARGV[i + 1], costs[successes + (i - first) / 4 + 1]
    local id = state.generation .. '-' .. index
    -- cure: op number in settle, failures
    if not late then
      if kind == 'f' then
        fail(batch, state, id, index, ARGV[i + 2], tonumber(ARGV[i + 3]), cost)
      else
        giveBack(batch, state, id, cost)
      end
      -- cure: top-up in retry
      gaveBack = true
    end
    noteReported(batch, id, index)
  end
  return gaveBack
end
