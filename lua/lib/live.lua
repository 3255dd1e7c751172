-- Whether somebody follows the results: 1 or 0. A reader says so for 10 s at most: what lies further ahead was written
-- by a clock that was wrong.
local function isLive(followedUntil, at)
  local left = followedUntil and tonumber(followedUntil) - at or 0
  return left > 0 and --[[cure: a reader is not believed for longer than 10 s]] left <= 10000 and 1 or 0
end
