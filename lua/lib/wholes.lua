--- @needs digits
-- Up to how many sub-requests, and bytes of them, a request is stored as one string. A larger one is only where the last
-- ones like it were read and settled as a whole, a minute ago at most: where they are not, it is made a stream later, which
-- takes longer than to make one at once.
local SMALL_ITEMS, SMALL_BYTES = 32, 2048
local LARGE_ITEMS, LARGE_BYTES, WHOLE_MS = 128, 16384, 60000

-- A compact request of `total` sub-requests was settled as a whole.
local function noteWhole(counters, total, at)
  if total > SMALL_ITEMS then
    redis.call('HSET', counters, 'wholeAt', digits(at))
  end
end

local function areLargeWhole(wholeAt, at)
  return wholeAt and math.abs(at - wholeAt) < WHOLE_MS
end
