-- Completes the request if it is sealed (or being cancelled) and its last sub-request is settled:
-- the outcome is written first, published second; what only served the running request goes last,
-- because no key may be touched after its delete. Returns the outcome, or nil.
local function completeIfDone(request, state, at, channel, spent)
  local ending = state.status == 'sealed' or state.status == 'cancelling'
  if not ending or state.succeeded + state.failed + state.cancelled < state.total then
    return nil
  end
  local v = redis.call('HMGET', request, 'toleratedFailures', 'retentionMs', 'endReason')
  local outcome = 'succeeded'
  if v[3] == 'deadline' or v[3] == 'failures' then
    outcome = 'failed'
  elseif state.status == 'cancelling' then
    outcome = 'cancelled'
  elseif exceeded(state, v[1]) then
    outcome = 'failed'
  end
  redis.call('HSET', request, 'status', 'complete', 'outcome', outcome, 'completedAt', at,
    'granted', 0, 'out', 0, 'outBefore', 0)
  for _, key in ipairs(spent.kept) do
    redis.call('PEXPIRE', key, v[2])
  end
  redis.call('PEXPIRE', request, v[2])
  -- A user without the right to publish completes all the same: waiters read from time to time.
  redis.pcall('SPUBLISH', channel, state.generation .. ' ' .. outcome)
  for _, key in ipairs(spent.keys) do
    -- In a hash slot on its way to another server, one that just became empty may not be touched.
    redis.pcall('UNLINK', key)
  end
  return outcome
end
