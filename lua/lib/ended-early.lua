-- Ends a request before its work is done: from here on it is being cancelled, and `endReason` says why.
-- The first reason stays.
local function endEarly(request, state, reason)
  state.status = 'cancelling'
  redis.call('HSET', request, 'status', 'cancelling')
  redis.call('HSETNX', request, 'endReason', reason)
end
