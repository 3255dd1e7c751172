-- The books of an unfinished request (I1). Pending in the group is what was delivered and is not settled; of that, what
-- is in `due` does not run. Unread is what is neither settled nor pending. That is reckoned rather than asked for,
-- because the stream's own lag turns null after some XDELs (Redis 7.0.15).
-- `inDue`: how many are in `due`, if the caller knows.
local function readBooks(state, work, due, at, inDue)
  local pending = 0
  if state.granted == 0 and state.total <= 32 then
    -- A shorter reply than the other, as few workers can own anything.
    pending = redis.call('XPENDING', work, 'workers')[1]
  else
    local group = redis.call('XINFO', 'GROUPS', work)[1]
    for i = 1, #group, 2 do
      if group[i] == 'pending' then
        pending = group[i + 1]
      end
    end
  end
  inDue = inDue or redis.call('ZCARD', due)
  local dueNow = 0
  if inDue > 0 then
    dueNow = redis.call('ZCOUNT', due, '-inf', at)
  end
  local unread = state.total - state.settled - pending
  return {
    unread = unread,
    dueNow = dueNow,
    inFlight = pending - inDue,
    ready = unread + dueNow,
    delayed = inDue - dueNow,
  }
end

-- When the first delayed sub-request is due; nil: none is delayed.
local function nextDelayed(due, at)
  return tonumber(redis.call('ZRANGEBYSCORE', due, '(' .. at, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2])
end

-- How many sub-requests are due now, and when the next one is; 0: never.
local function dueTimes(due, at, inDue)
  if inDue == 0 then
    return 0, 0
  end
  return redis.call('ZCOUNT', due, '-inf', at), nextDelayed(due, at) or 0
end
