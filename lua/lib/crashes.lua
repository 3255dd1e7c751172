--- @needs record-id
-- What is known of the end of a worker, in words and as fields of the error. `cause` is what `cause` noted
-- of it, or nil. A boot id tells host and process: <host>-<pid>-<eight characters>.
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

-- A worker ended, and this entry was with it: one crash more, and at `maxCrashes` the sub-request is
-- settled as failed, if it ran alone in its process when it crashed last (`run-alone`): whatever else a
-- worker held may be a bystander. That is a suspect, and tried in ever smaller company until it is
-- alone. (With maxCrashes 1 there is no such trial.) Returns whether it is settled; what to record,
-- and what to take out of `tries`, is collected, as a key that became empty must not be touched again.
local function settledByCrash(keys, state, worker, id, records, cause)
  local index = id:match('%d+$')
  local v = redis.call('HMGET', keys.tries, index, index .. ':crashes', index .. ':alone')
  local crashes = (tonumber(v[2]) or 0) + 1
  -- In a request that is being cancelled, what did not succeed counts as cancelled.
  if state.status == 'cancelling' then
    return false
  end
  if crashes < state.maxCrashes or (crashes > 1 and v[3] ~= worker) then
    redis.call('HSET', keys.tries, index .. ':crashes', crashes)
    return false
  end
  local entry = redis.call('XRANGE', keys.work, id, id)[1]
  redis.call('XACK', keys.work, 'workers', id)
  redis.call('HSET', keys.failed, index, crashError(worker, crashes, v[3] == worker, cause),
    index .. ':payload', entry and entry[2][2] or '',
    index .. ':runs', state.generation .. ' ' .. (v[1] or 0) .. ' ' .. crashes)
  state.failed = state.failed + 1
  keys.crashed = keys.crashed or {}
  keys.crashed[#keys.crashed + 1] = index
  state.kept = state.kept + (entry and #entry[2][2] or 0)
  records[#records + 1] = '!' .. index
  records[#records + 1] = tonumber(v[1]) or 0
  for _, field in ipairs({ index, index .. ':crashes', index .. ':alone', index .. ':company', index .. ':checkpoint' }) do
    keys.tried[#keys.tried + 1] = field
  end
  return true
end

-- How many sub-requests were settled so, and the first 100 of their indexes: 'count index …'; '': none.
local function crashedIn(keys)
  local indexes = keys.crashed
  return indexes and table.concat({ #indexes, unpack(indexes, 1, math.min(100, #indexes)) }, ' ') or ''
end

-- Writes down what `settledByCrash` settled of one worker.
local function recordCrashes(keys, state, records)
  if #records == 0 then
    return
  end
  state.settled = state.succeeded + state.failed + state.cancelled
  redis.call('HSET', keys.request, 'failed', state.failed)
  redis.call('XADD', keys.results, recordId(state), unpack(records))
end
