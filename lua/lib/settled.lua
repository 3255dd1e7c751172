--- @needs record-id, cost
-- Writes the counts, the cost and the record of the outcomes of one settle. `kept`, `cost`: how many bytes the settles
-- before wrote, and the cost of what they counted.
local function writeOutcomes(batch, state, kept, cost)
  redis.call('HSET', batch.request, 'succeeded', state.succeeded, 'failed', state.failed,
    'cancelled', state.cancelled, 'granted', state.granted, 'kept', kept + state.kept,
    'cost', costWith(cost, batch.costs))
  if #batch.records > 0 then
    -- `longest` is the length of the longest record, if that is above 64 KiB.
    if state.kept > 65536 and state.kept > (tonumber(redis.call('HGET', batch.request, 'longest')) or 0) then
      -- cure: a read of results is bounded by bytes, 2
      redis.call('HSET', batch.request, 'longest', state.kept)
    end
    redis.call('XADD', batch.results, recordId(state), unpack(batch.records))
  end
end

-- Removes what only served the sub-requests that are settled now.
local function removeTraces(batch)
  if #batch.ended > 0 then
    redis.call('HDEL', batch.progress, unpack(batch.ended))
  end
  if #batch.tried > 0 then
    redis.call('HDEL', batch.tries, unpack(batch.tried))
  end
end
