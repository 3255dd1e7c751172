-- No time that was written is believed beyond now and the longest wait that was meant by it: the server's clock
-- went back since, or it was another server's. And no lease ends by a jump of the clock, or while Redis
-- was away and nobody could renew it.

-- The time in `field`, no later than `ms` from now; without `ms`, which an older release did not write, as it is.
local function notBeyond(request, field, written, at, ms)
  if not ms or not (written > at + ms) or written == math.huge then
    return written
  end
  redis.call('HSET', request, field, at + ms)
  return at + ms
end

-- The end of a hold. `heldFor` says for how long the one until that time was meant; one until a time of the user's
-- own has none.
local function endsHold(request, heldUntil, heldFor, at)
  local of, ms = (heldFor or ''):match('^(%d+) (%d+)$')
  if tonumber(of) ~= heldUntil or heldUntil <= at + ms then
    return heldUntil
  end
  redis.call('HSET', request, 'heldUntil', at + ms, 'heldFor', at + ms .. ' ' .. ms)
  return at + ms
end

-- Since when, by the clock of this server, all can renew again. That of the queue's side may be another one: where
-- its tick lies ahead, or seems to be late, only what lies between two of its times is taken from it.
local function graceOf(stale, late, at, tickedAt, resumedAt, gapAt, gapMs)
  local function own(time)
    if late or tickedAt > at then
      return at - math.max(0, tickedAt - time)
    end
    return math.min(time, at)
  end
  return {
    from = stale and at or resumedAt > 0 and own(resumedAt) or 0,
    gapAt = gapAt > 0 and own(gapAt) or 0,
    gapMs = gapMs,
  }
end

-- When the lease in `field` ends, which lasts `term` from each renewal. After an outage each has the whole of its
-- term again. After a gap between two ticks that is longer than the term, as when the clock jumped, it has
-- that once: the half millisecond says that it had, until it is renewed.
local function leaseEnds(request, field, written, term, at, grace)
  local ends = math.max(written, grace.from + (term or 0))
  if ends > at or not term or grace.gapMs <= term or grace.gapAt + term <= at or written % 1 > 0 then
    return ends
  end
  redis.call('HSET', request, field, ('%.1f'):format(at + term + 0.5))
  return at + term
end

-- Delays of attempts that lie beyond the longest that was ever asked for are brought back to it.
local function delaysWentBack(due, at, longestMs)
  if not longestMs then
    return
  end
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', due, '(' .. at + longestMs, '+inf', 'LIMIT', 0, 5000)) do
    redis.call('ZADD', due, at + longestMs, id)
  end
end
