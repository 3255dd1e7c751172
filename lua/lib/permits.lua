--- @needs digits
-- Shrinks the permits of a worker to those that it wants to keep; never raises them. Above a lowered
-- limit, and of a request that is paused or being cancelled, it keeps no more than what runs. Returns
-- how many it has now.
local function keepPermits(request, state, worker, permits, keep, running, leaseEnds)
  local excess = math.max(0, state.granted - state.limit)
  -- cure: permits above a lowered limit are taken back
  local allow = math.min(keep, permits, math.max(running, permits - excess))
  if
    -- cure: a paused request grants, mints and hands out nothing, 2
    state.halted or state.status == 'cancelling' then
    allow = math.min(allow, running)
  end
  state.granted = state.granted - (permits - allow)
  if allow == 0 then
    redis.call('HDEL', request, 'permits:' .. worker, 'lease:' .. worker, 'term:' .. worker,
      'since:' .. worker)
  else
    redis.call('HSET', request, 'permits:' .. worker, digits(allow), 'lease:' .. worker, digits(leaseEnds))
  end
  return allow
end
