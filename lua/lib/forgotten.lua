-- A worker says the number of its last call for this request that was answered (`answered`). Where the last
-- one that this server knows (`known`) is lower, the server lost writes that the worker builds on: what it
-- reports may be unread by now, or with somebody else. From then on nobody is believed to have all that
-- it reports. Only under permits: without them each success is asked for anyway, and the number may be gone.
local function noteForgotten(request, permits, known, answered)
  if permits == 0 or known >= answered then
    return false
  end
  redis.call('HSET', request, 'contested', 1)
  return true
end
