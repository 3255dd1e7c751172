-- Has a request tended at `at`, or sooner if that is noted. A claim ends in half a millisecond: its tend may have begun
-- before what is due at `at` was known. So a claim that ends before `at` is made an ordinary time. Then `write-back`
-- leaves it alone, and the next tend finds out.
local function noteDue(agenda, id, at)
  local known = tonumber(redis.call('ZSCORE', agenda, id))
  -- cure: a time behind a claim is not overwritten
  if known and known < at and known % 1 > 0 then
    at = math.floor(known)
  end
  redis.call('ZADD', agenda, 'LT', at, id)
end
