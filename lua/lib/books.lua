-- The books of an unfinished request (I1). Delivered and unsettled is what the group has pending;
-- of that, what sits in `due` is not running. What is neither settled nor pending was never read:
-- by conservation, because the stream's own lag turns null after some XDELs (Redis 7.0.15).
-- `held`: how many are parked, if the caller knows.
local function readBooks(state, work, due, at, held)
  local pending = 0
  local group = redis.call('XINFO', 'GROUPS', work)[1]
  for i = 1, #group, 2 do
    if group[i] == 'pending' then
      pending = group[i + 1]
    end
  end
  held = held or redis.call('ZCARD', due)
  local dueNow = 0
  if held > 0 then
    dueNow = redis.call('ZCOUNT', due, '-inf', at)
  end
  local unread = state.total - state.settled - pending
  return {
    unread = unread,
    dueNow = dueNow,
    inFlight = pending - held,
    ready = unread + dueNow,
    delayed = held - dueNow,
  }
end
