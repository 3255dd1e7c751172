--- @needs exceeded
-- Ends a request before its work is done: from here on it is being cancelled, and `endReason` says why.
-- The first reason stays.
local function endEarly(request, state, reason)
  state.status = 'cancelling'
  redis.call('HSET', request, 'status', 'cancelling')
  redis.call(--[[cure: the first reason of an early end stays]] 'HSETNX', request, 'endReason', reason)
end

-- Ends a request in which too many failed, if that is how it wants to be ended. A share is one of all,
-- so it counts when all are there.
local function endIfExceeded(request, state)
  if state.failed == 0 or (state.status ~= 'open' and state.status ~= 'sealed') then
    return
  end
  local v = redis.call('HMGET', request, 'onExceeded', 'toleratedFailures')
  if v[1] ~= 'cancel' or (
    -- cure: a share of failures waits for the seal
    state.status == 'open' and v[2]:sub(-1) == '%') then
    return
  end
  if exceeded(state, v[2]) then
    -- cure: too many failures end it in settle
    endEarly(request, state, 'failures')
  end
end
