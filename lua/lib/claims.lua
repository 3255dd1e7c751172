-- Claims what is due on the agenda, `max` at most, by moving its time ahead: if the claimer dies, it is due again. The
-- new time is a number that ends in .5, which no other time does (lib/due). An announced change ('id~') that is due is
-- removed: at that time at the latest, the id is due too.
-- Returns id, generation, passed epoch or '', and the new time of each; and the time of the earliest entry, or -1.
local function claimDue(queue, at, lockMs, graceMs, max)
  local claims = {}
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', queue.agenda, '-inf', at, 'LIMIT', 0, 2 * max)) do
    if #claims == 4 * max then
      break
    end
    local generation = redis.call('HGET', queue.open, id)
    if generation then
      local epoch, passedAt = (redis.call('HGET', queue.marks, id) or ''):match('^(%d+):(%d+)$')
      -- cure: a pop that lies ahead counts as now
      if epoch and tonumber(passedAt) > at then
        passedAt = at
        redis.call('HSET', queue.marks, id, epoch .. ':' .. at)
      end
      local passed = epoch and passedAt + graceMs <= at and epoch or ''
      local claim = ('%.1f'):format(at + lockMs + 0.5)
      redis.call('ZADD', queue.agenda, claim, id)
      claims[#claims + 1] = id
      claims[#claims + 1] = generation
      claims[#claims + 1] = passed
      claims[#claims + 1] = claim
    else
      redis.call('ZREM', queue.agenda, id)
    end
  end
  return claims, tonumber(redis.call('ZRANGE', queue.agenda, 0, 0, 'WITHSCORES')[2] or -1)
end

-- Claims what is kept beyond its retention in the same way: 'id~generation' of each, ten at most.
local function claimSpent(spent, at, lockMs)
  local over = redis.call('ZRANGEBYSCORE', spent, '-inf', at, 'LIMIT', 0, 10)
  for _, member in ipairs(over) do
    -- cure: large keys are unlinked before they expire, 4
    redis.call('ZADD', spent, at + lockMs, member)
  end
  return over
end
