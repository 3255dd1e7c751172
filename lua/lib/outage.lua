-- While Redis is away nobody can renew a lease. What a tend knows of that comes from the tick that claimed the request.

-- Whether this tend was under way for longer than an outage lasts: it was sent before anybody knew that Redis was away.
-- Returns first whether it gives every lease its full term again (`stale`), then whether it was late. After a stale
-- tend the next one follows soon and decides. That one is not treated as late again: if the clocks of two servers
-- differ by so much, every tend would seem late, and a dead worker would keep its permits for ever.
local function delayedByOutage(request, state, at, tickedAt, awayMs, known)
  local late, lateTick = tickedAt > 0 and at - tickedAt > awayMs, tonumber(known)
  if lateTick and --[[cure: a late tend after the clock went back]] lateTick - tickedAt > 4 * awayMs then
    -- The clock went back since then.
    lateTick = nil
  end
  -- cure: a tend older than an outage takes nothing back
  local stale = late and (state.granted > 0 or
    -- cure: grace for producers in a late tend
    state.status == 'open')
    and --[[cure: a tend that seems late is postponed once]] not (lateTick and tickedAt > lateTick)
  if stale then
    redis.call('HSET', request, 'lateTick', math.max(tickedAt, lateTick or 0))
  elseif known and not late then
    -- cure: a tend that seems late is postponed once, 2
    redis.call('HDEL', request, 'lateTick')
  end
  return stale, late
end

-- From when on, by the clock of this server, all can renew again. The queue side may be on another server: where its
-- tick lies ahead, or seems to be late, only the distance between two of its times is used.
local function graceOf(stale, late, at, tickedAt, resumedAt, gapAt, gapMs)
  local function own(time)
    if late or tickedAt > at then
      -- cure: an outage is measured by one clock
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
