-- When the pause of a queue ends by itself, 0: never, -1: it is not paused; and whether the key is there. `length` says
-- for how long the pause until that time was meant, from where it was asked: where the clock went back, it is not
-- believed for longer.
-- The key does not expire, as a server with a `volatile-` policy might evict it: `tick` removes it when the pause is over.
local function pauseEnds(paused, at)
  local v = redis.call('HMGET', paused, 'until', 'length')
  local ends = tonumber(v[1]) or -1
  if ends > 0 then
    local of, ms = (v[2] or ''):match('^(%d+) (%d+)$')
    -- cure: the pause of a queue is not believed beyond its length
    if tonumber(of) == ends and ends > at + ms then
      ends = at + ms
      redis.call('HSET', paused, 'until', ends, 'length', ends .. ' ' .. ms)
    elseif ends <= at then
      ends = -1
    end
  end
  return ends, v[1] ~= false
end
