--- @needs clock-back
-- What the times of the ticks say: whether Redis was away, and whether its clock went back.

-- A live fleet ticks more often than `awayMs` (or `awayPerWorkerMs` for each worker): after a longer silence Redis was
-- away, or there was no fleet. A step of the clock forward looks the same, and may come right before an outage or behind
-- it. So two silences in a row bring a grace each, and a third none before the fleet has ticked twice: otherwise a Redis
-- that comes and goes would have a dead worker keep its permits for ever.
-- Idle processes may rest for nearly `goneMs` between two ticks. When only such have ticked lately, nobody had a lease to
-- renew, and their silence is no outage. Whoever takes work ticks at once, and does not rest.
-- When the clock went back, nobody knows how long the silence was. It counts as an outage, since leases may last their
-- whole term again then in any case.
-- Before the first tick, the time since the first id was opened counts.
-- `again`: when a second grace in a row was given last. Returns when Redis was last back, and whether it was away until now.
local function noteReturn(counters, at, tickedAt, known, again, awayMs)
  local back =
    -- cure: an outage before which the clock went back
    tickedAt - at > BACK_MS
  local away, resumedAt = at - tickedAt > awayMs, known
  if back or away and --[[cure: no third grace in a row]] tickedAt ~= again then
    if tickedAt == known then
      redis.call('HSET', counters, 'againAt', at)
    end
    -- cure: a whole lease of grace after Redis was away, 2
    resumedAt = at
  end
  if resumedAt ~= known then
    redis.call('HSET', counters, 'resumedAt', resumedAt)
  end
  return resumedAt, back or away
end

-- Notes this tick. Returns when Redis was last back; when the longest gap between two ticks that still matters ended;
-- how long it was. A gap matters as long as a lease that is shorter may have ended because it could not be renewed
-- in it. A longer one is an outage, which has the rule above. Without the key nothing was ever open.
local function noteTick(counters, workers, agenda, at, awayMs, awayPerWorkerMs, rests, goneMs)
  if redis.call('EXISTS', counters) == 0 then
    return 0, 0, 0
  end
  local before, backAt, againAt, gapAt, gapFrom, openedAt, firstAt, briskAt = unpack(redis.call('HMGET', counters,
    'tickedAt', 'resumedAt', 'againAt', 'gapAt', 'gapFrom', 'openedAt', 'firstAt', 'briskAt'))
  openedAt = tonumber(openedAt) or 0
  -- cure: an outage before the first tick
  local first = openedAt > at and openedAt or tonumber(firstAt) or at
  local tickedAt, known = tonumber(before) or first, tonumber(backAt) or 0
  awayMs = math.max(awayMs, redis.call('ZCARD', workers) * awayPerWorkerMs)
  briskAt = tonumber(briskAt) or tickedAt
  -- cure: the rest of a frugal fleet is no outage
  if tickedAt - briskAt > awayMs then
    awayMs = math.max(awayMs, goneMs)
  end
  local resumedAt, away = noteReturn(counters, at, tickedAt, known, tonumber(againAt), awayMs)
  gapAt = tonumber(gapAt) or 0
  local gapMs = gapAt - (tonumber(gapFrom) or gapAt)
  local gap = away and 0 or math.max(0, at - tickedAt)
  if at + gap >= gapAt + gapMs or gapAt > at then
    gapAt, gapMs = at, gap
  end
  -- cure: work that begins in a fleet that rests is told from it
  briskAt = rests and math.min(briskAt, at) or at
  redis.call('HSET', counters, 'tickedAt', at, 'briskAt', briskAt, 'gapAt', gapAt, 'gapFrom', gapAt - gapMs)
  -- Ids are opened between two ticks, and before the first.
  -- cure: an opened id shows how far the clock was, 2
  local seenAt = math.max(tonumber(before) or at, openedAt)
  if seenAt > at then
    -- cure: a lease is not believed beyond its length, 2
    clockWentBack(counters, seenAt - at, at)
    redis.call('HDEL', counters, 'openedAt')
  end
  shiftAgenda(counters, agenda)
  return resumedAt, gapAt, gapMs
end
