-- Has a request tended at `at`, or sooner if that is noted. The time of a claim is a number that ends in .5. Its tend
-- may have begun before what is due at `at` was known: so if the time of a claim is before `at`, the .5 is taken off.
-- Then `write-back` sets no other time, and the next tend finds out.
local function noteDue(agenda, id, at)
  local known = tonumber(redis.call('ZSCORE', agenda, id))
  -- cure: a time behind a claim is not overwritten
  if known and known < at and known % 1 > 0 then
    at = math.floor(known)
  end
  redis.call('ZADD', agenda, 'LT', at, id)
end
