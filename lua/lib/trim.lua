-- Frees the memory of settled entries. XTRIM to the oldest pending one is cheap, but everything
-- behind that one stays. When it is far behind (a straggler, a retry due in an hour) the request is
-- `pinned`: from then on settled entries are deleted one by one, until the straggler is gone.
-- Entries below index `upTo` were all delivered, as that was itself.
local function trim(request, work, generation, upTo, wasPinned)
  local oldest = redis.call('XPENDING', work, 'workers', '-', '+', 1)[1]
  local bound = oldest and oldest[1] or string.format('%s-%d', generation, upTo)
  redis.call('XTRIM', work, 'MINID', '~', bound)
  local behind = upTo - tonumber(bound:sub(#generation + 2))
  if behind > 4096 and not wasPinned then
    redis.call('HSET', request, 'pinned', 1)
  elseif behind <= 4096 and wasPinned then
    redis.call('HDEL', request, 'pinned')
  end
end
