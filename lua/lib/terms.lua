-- A stored time is never believed to be further ahead than the wait that was meant by it: a time beyond that was
-- written before the clock went back, or by another server. And no lease ends because the clock jumped, or while
-- Redis was away and nobody could renew it.

-- The time in `field`, at most `ms` from now. Without `ms`, which an older release did not write, it stays as it is.
local function notBeyond(request, field, written, at, ms)
  if not ms or not (written > at + ms) or written == math.huge then
    return written
  end
  redis.call('HSET', request, field, at + ms)
  return at + ms
end

-- The end of a hold. `heldFor` says how long the hold until that time was meant to last, and the reason of a hold by a
-- worker. A hold until a time that the user named has none.
local function endsHold(request, heldUntil, heldFor, at)
  local of, ms, reason = (heldFor or ''):match('^(%d+) (%d+)(.*)$')
  if tonumber(of) ~= heldUntil or heldUntil <= at + ms then
    return heldUntil
  end
  redis.call('HSET', request, 'heldUntil', at + ms, 'heldFor', at + ms .. ' ' .. ms .. reason)
  return at + ms
end

-- When the lease in `field` ends. It lasts `term` from each renewal. After an outage each lease gets its whole term
-- again. After a gap between two ticks that is longer than the term, as when the clock jumped, a lease gets its
-- term again once: the stored time is then a number that ends in .5, until the lease is renewed.
local function leaseEnds(request, field, written, term, at, grace)
  -- cure: a whole lease of grace after Redis was away
  local ends = math.max(written, grace.from + (term or 0))
  if ends > at or not term or
    -- cure: grace for a lease that is shorter than a gap between two ticks
    grace.gapMs <= term or grace.gapAt + term <= at or
    -- cure: that grace is given once
    written % 1 > 0 then
    return ends
  end
  redis.call('HSET', request, field, ('%.1f'):format(at + term + 0.5))
  return at + term
end

-- Shortens the delays of attempts that are longer than the longest delay that was ever asked for, the first 5,000 of
-- them. Returns whether there may be more.
local function shortenDelays(due, at, longestMs)
  if not longestMs then
    return false
  end
  local beyond = redis.call('ZRANGEBYSCORE', due, '(' .. at + longestMs, '+inf', 'LIMIT', 0, 5000)
  for _, id in ipairs(beyond) do
    redis.call('ZADD', due, at + longestMs, id)
  end
  -- cure: delays are shortened page by page
  return #beyond == 5000
end
