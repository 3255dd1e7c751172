-- Notes when the first id of a queue was opened: `openedAt` says whether one was. Before the first tick that time shows
-- whether Redis was away (lib/gaps).
local function noteFirst(counters, openedAt, at)
  if not openedAt then
    redis.call('HSET', counters, 'firstAt', at)
  end
end
