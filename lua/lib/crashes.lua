-- A worker ended, and this entry was with it: one crash more, and at `maxCrashes` the sub-request is
-- settled as failed. The last crash counts only for what ran alone in its process (`run-alone`):
-- whatever else a worker held may be a bystander, which stays one crash below and is tried alone
-- next. (With maxCrashes 1 there is no such trial.) Returns whether it is settled; what to record,
-- and what to take out of `tries`, is collected, as a key that became empty must not be touched again.
local function settledByCrash(keys, state, worker, id, records)
  local index = id:match('%d+$')
  local v = redis.call('HMGET', keys.tries, index, index .. ':crashes', index .. ':alone')
  local crashes = (tonumber(v[2]) or 0) + 1
  if crashes < state.maxCrashes then
    redis.call('HSET', keys.tries, index .. ':crashes', crashes)
    return false
  end
  -- In a request that is being cancelled, what did not succeed counts as cancelled.
  if state.status == 'cancelling' or (crashes > 1 and v[3] ~= worker) then
    return false
  end
  local message = 'its worker ended ' .. crashes .. (crashes == 1 and ' time' or ' times') .. ' while it ran'
  local entry = redis.call('XRANGE', keys.work, id, id)[1]
  redis.call('XACK', keys.work, 'workers', id)
  redis.call('HSET', keys.failed, index, '{"name":"CrashError","message":"' .. message .. '"}',
    index .. ':payload', entry and entry[2][2] or '',
    index .. ':runs', state.generation .. ' ' .. (v[1] or 0) .. ' ' .. crashes)
  state.failed = state.failed + 1
  state.kept = state.kept + (entry and #entry[2][2] or 0)
  records[#records + 1] = '!' .. index
  records[#records + 1] = tonumber(v[1]) or 0
  for _, field in ipairs({ index, index .. ':crashes', index .. ':alone', index .. ':checkpoint' }) do
    keys.tried[#keys.tried + 1] = field
  end
  return true
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
