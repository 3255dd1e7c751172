-- Tells those who wait for a request that it has ended. A user without the right to publish completes it all the same:
-- waiters read from time to time.

-- The record of the successes of a request, as text: GS (U+001D), its position and its successes. Up to so many bytes go
-- along with the message, if the results are kept for that long: those that expire soon are read.
local TOLD_BYTES, TOLD_FROM_MS = 1024, 60000
local function recordText(id, successes)
  return '\29' .. id .. successes
end

-- `records`: what goes along to the channel `notify` of the process that submitted it; false: it named none.
local function publishNotice(notice, channel, notify, records)
  -- cure: completion state before publish
  redis.pcall('SPUBLISH', channel, notice)
  if notify then
    redis.pcall('SPUBLISH', notify, channel .. ' ' .. notice .. records)
  end
end
