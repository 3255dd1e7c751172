--- @host ARGV
-- The clock of the test build: the server's time moved by the offset that the caller appended as
-- the last argument, so that tests need not sleep. It is removed before the script reads its arguments.
local clockOffset = tonumber(table.remove(ARGV))

local function now()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000) + clockOffset
end
