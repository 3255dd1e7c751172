-- A create of this life may be on its way for longer than its retention lasts, and would bring it into
-- being once more, with nobody to look after it. Until it is too old to be heard, the stream stays, empty
-- and without its group, and says by its last id which life it was. Everybody but `create` sees nothing.
local function rememberLife(work, state, at, retentionMs, createUntil)
  local left = (createUntil or 0) + 1000 - at
  if left <= retentionMs then
    return false
  end
  redis.call('XTRIM', work, 'MAXLEN', 0)
  redis.call('XGROUP', 'DESTROY', work, 'workers')
  redis.call('XSETID', work, string.format('%s-%d', state.generation, state.total))
  redis.call('PEXPIRE', work, left)
  return true
end

-- Completes the request if it is sealed (or being cancelled) and its last sub-request is settled:
-- the outcome is written first, published second; what only served the running request goes last,
-- because no key may be touched after its delete. Returns the outcome, or nil.
local function completeIfDone(request, state, at, channel, spent)
  local ending = state.status == 'sealed' or state.status == 'cancelling'
  if not ending or state.succeeded + state.failed + state.cancelled < state.total then
    return nil
  end
  local v = redis.call('HMGET', request, 'toleratedFailures', 'retentionMs', 'createUntil')
  local outcome = 'succeeded'
  if state.status == 'cancelling' then
    outcome = 'cancelled'
  elseif state.failed > tonumber(v[1]) then
    outcome = 'failed'
  end
  redis.call('HSET', request, 'status', 'complete', 'outcome', outcome, 'completedAt', at,
    'granted', 0, 'out', 0, 'outBefore', 0)
  for _, key in ipairs(spent.kept) do
    redis.call('PEXPIRE', key, v[2])
  end
  redis.call('PEXPIRE', request, v[2])
  -- A user without the right to publish completes all the same: waiters read from time to time.
  local notice = { state.generation, outcome, state.total, state.succeeded, state.failed, state.cancelled }
  redis.pcall('SPUBLISH', channel, table.concat(notice, ' '))
  local first = rememberLife(spent.keys[1], state, at, tonumber(v[2]), tonumber(v[3])) and 2 or 1
  for i = first, #spent.keys do
    -- In a hash slot on its way to another server, one that just became empty may not be touched.
    redis.pcall('UNLINK', spent.keys[i])
  end
  return outcome
end
