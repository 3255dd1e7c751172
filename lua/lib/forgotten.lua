-- A worker names its last call for this request that was answered (`answered`). If the last call that this server knows
-- (`known`) is older, the server lost writes that the worker relies on: an entry that it reports may be unread by now,
-- or owned by another worker. From then on no worker is believed to own all that it reports. This holds only under
-- permits: without them each success is asked for anyway, and the number may be gone.
local function noteForgotten(request, permits, known, answered)
  -- cure: lost writes are noticed
  if --[[cure: lost writes are noticed only under permits]] permits == 0 or known >= answered then
    return false
  end
  redis.call('HSET', request, 'contested', 1)
  return true
end
