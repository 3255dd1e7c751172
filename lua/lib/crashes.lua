--- @needs record-id
-- The error for a sub-request whose worker ended: a message, and fields with what is known of the end. `cause` is what
-- the script `cause` noted, or nil. A boot id contains host and process: <host>-<pid>-<eight characters>.
local function crashError(worker, crashes, alone, cause)
  local known = { name = 'CrashError', crashes = crashes, worker = worker }
  for _, field in ipairs({ 'exitCode', 'signal', 'outOfMemory', 'blockedMs' }) do
    local value = cause and cause[field]
    known[field] = (type(value) == 'string' or type(value) == 'number') and value or nil
  end
  local host, pid = worker:match('^(.*)%-(%d+)%-[%w_-]+$')
  if host and #worker == #host + #pid + 10 then
    known.host, known.pid = host, tonumber(pid)
  end
  local who = known.pid and ('process ' .. pid .. ' on ' .. host) or ('worker ' .. worker)
  local how = 'stopped renewing its lease'
  if tonumber(known.blockedMs) then
    how = 'had blocked its event loop for ' .. math.floor(known.blockedMs / 1000) .. ' s'
  elseif known.signal then
    how = 'was ended by ' .. known.signal
  elseif known.exitCode then
    how = 'ended with exit code ' .. known.exitCode
  end
  if known.outOfMemory then
    how = how .. ', perhaps out of memory'
  end
  known.message = 'its worker ended ' .. crashes .. (crashes == 1 and ' time' or ' times') .. ' while it ran'
    .. (alone and ', at last while it ran alone: ' or ': ') .. who .. ' ' .. how
  return cjson.encode(known)
end

-- Counts a crash for an entry of a worker that ended. At `maxCrashes` the sub-request is settled as failed, if it ran
-- isolated in its process at its last crash (`run-alone`). Otherwise another entry of the worker may have caused the
-- crash: the sub-request is a suspect, and runs in ever smaller company until it is isolated. With maxCrashes 1 it
-- fails at once. Returns whether the sub-request is settled. Records and fields of `tries` to delete are collected in
-- `records` and `batch`, as a key that became empty must not be touched again.
local function settledByCrash(batch, state, worker, id, records, cause)
  local index = id:match('%d+$')
  local tried, crashedBefore, ranAlone =
    unpack(redis.call('HMGET', batch.tries, index, index .. ':crashes', index .. ':alone'))
  local crashes = (tonumber(crashedBefore) or 0) + 1
  -- In a request that is being cancelled, a sub-request that did not succeed counts as cancelled.
  if state.status == 'cancelling' then
    return false
  end
  if crashes < state.maxCrashes or (
    -- cure: the last crash counts only in isolation
    crashes > 1 and ranAlone ~= worker) then
    redis.call('HSET', batch.tries, index .. ':crashes', crashes)
    return false
  end
  local entry = redis.call('XRANGE', batch.work, id, id)[1]
  redis.call('XACK', batch.work, 'workers', id)
  redis.call('HSET', batch.failed, index, crashError(worker, crashes, ranAlone == worker, cause),
    index .. ':payload', entry and entry[2][2] or '',
    index .. ':runs', state.generation .. ' ' .. (tried or 0) .. ' ' .. crashes)
  state.failed = state.failed + 1
  batch.crashed = batch.crashed or {}
  batch.crashed[#batch.crashed + 1] = index
  state.kept = state.kept + (entry and #entry[2][2] or 0)
  records[#records + 1] = '!' .. index
  records[#records + 1] = tonumber(tried) or 0
  for _, field in ipairs({ index, index .. ':crashes', index .. ':alone', index .. ':company', index .. ':checkpoint' }) do
    batch.tried[#batch.tried + 1] = field
  end
  return true
end

-- How many sub-requests failed by a crash, and the first 100 of their indexes: 'count index …'; '': none.
local function crashedIn(batch)
  local indexes = batch.crashed
  return indexes and table.concat({ #indexes, unpack(indexes, 1, math.min(100, #indexes)) }, ' ') or ''
end

-- Records the sub-requests of one worker that `settledByCrash` settled.
local function recordCrashes(batch, state, records)
  if #records == 0 then
    return
  end
  state.settled = state.succeeded + state.failed + state.cancelled
  redis.call('HSET', batch.request, 'failed', state.failed)
  redis.call('XADD', batch.results, recordId(state), unpack(records))
end
