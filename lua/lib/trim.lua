--- @needs last-read
-- Checks the 512 entries below index `to`, or those from `first` on if they are fewer, and deletes the ones that are
-- not pending. All were delivered, so an entry that is not pending is settled. Returns the lowest index checked.
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

-- Frees the memory of settled entries. XTRIM to the oldest pending entry is cheap, but keeps everything behind it. If
-- that entry is far behind (a straggler, or a retry due in an hour), the request becomes `pinned`. Until the straggler
-- is gone, each settled entry is then deleted when it is settled, and each trim deletes some of those settled before,
-- from the newest down. `pinned` is the index below which they are not yet deleted.
-- The entry with index `upTo` was delivered, and so were all before it. A server that lost writes is the exception:
-- it delivers entries behind `lastRead` again.
local function trim(request, work, generation, upTo, pinned)
  local oldest = redis.call('XPENDING', work, 'workers', '-', '+', 1)[1]
  local first = oldest and tonumber(oldest[1]:match('%d+$')) or math.min(upTo, lastRead(work))
  redis.call('XTRIM', work, 'MINID', '~', string.format('%s-%d', generation, first))
  -- The limit for unpinning is lower than the one for pinning, so that a request near the limit does not alternate.
  if pinned and upTo - first <= 2048 then
    redis.call('HDEL', request, 'pinned')
  elseif pinned or upTo - first > 4096 then
    local below = tonumber(pinned) or math.min(upTo, lastRead(work)) + 1
    redis.call('HSET', request, 'pinned', deleteSettled(work, generation, first, below))
  end
end
