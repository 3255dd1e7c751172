--- @needs outcomes
-- Deletes those of the up to 512 entries below index `to`, but not below `first`, that are not pending:
-- all were delivered, so they are settled. Returns how far down it came.
local function deleteSettled(work, generation, first, to)
  local from = math.max(first, to - 512)
  if from >= to then
    return to
  end
  local function idOf(index)
    return string.format('%s-%d', generation, index)
  end
  local pending, settled = {}, {}
  for _, entry in ipairs(redis.call('XPENDING', work, 'workers', idOf(from), idOf(to - 1), to - from)) do
    pending[entry[1]] = true
  end
  for index = from, to - 1 do
    local id = idOf(index)
    if not pending[id] then
      settled[#settled + 1] = id
    end
  end
  if #settled > 0 then
    redis.call('XDEL', work, unpack(settled))
  end
  return from
end

-- Frees the memory of settled entries. XTRIM to the oldest pending one is cheap, but everything
-- behind that one stays. When it is far behind (a straggler, a retry due in an hour) the request is
-- `pinned`: from then on settled entries are deleted one by one, until the straggler is gone, and those
-- that were settled before, some at each trim, from the newest down: `pinned` is the index below which
-- they still stay. Entries up to index `upTo` were all delivered, as that was itself; but for a server
-- that lost writes, which will deliver them again.
local function trim(request, work, generation, upTo, pinned)
  local oldest = redis.call('XPENDING', work, 'workers', '-', '+', 1)[1]
  local first = oldest and tonumber(oldest[1]:match('%d+$')) or math.min(upTo, lastRead(work))
  redis.call('XTRIM', work, 'MINID', '~', string.format('%s-%d', generation, first))
  -- Unpinned far below what pins it, or a request that goes to and fro there would pay each time.
  if pinned and upTo - first <= 2048 then
    redis.call('HDEL', request, 'pinned')
  elseif pinned or upTo - first > 4096 then
    local below = tonumber(pinned) or math.min(upTo, lastRead(work)) + 1
    redis.call('HSET', request, 'pinned', deleteSettled(work, generation, first, below))
  end
end
