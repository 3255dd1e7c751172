-- The one clock: milliseconds of the server that runs the script. Times compared between
-- processes come from here and from nowhere else.
local function now()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end
