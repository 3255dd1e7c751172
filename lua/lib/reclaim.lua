-- Takes permits from workers that gave no sign of life, and strikes out the numbers of enters that
-- are two looks old. While Redis was away nobody could renew: from when it was back, each has the whole
-- of its lease to do so. Returns the time at which the next lease ends.
local function withdrawExpired(request, state, at, resumedAt)
  local all = redis.call('HGETALL', request)
  local held, leases, terms, ops = {}, {}, {}, {}
  for i = 1, #all, 2 do
    local kind, worker = all[i]:match('^(%a+):(.+)$')
    if kind == 'permits' then
      held[worker] = tonumber(all[i + 1])
    elseif kind == 'lease' then
      leases[worker] = tonumber(all[i + 1])
    elseif kind == 'term' then
      terms[worker] = tonumber(all[i + 1])
    elseif kind == 'op' then
      ops[worker] = all[i + 1]
    end
  end
  local nextLease = math.huge
  for worker, written in pairs(leases) do
    local ends = math.max(written, resumedAt + (terms[worker] or 0))
    if ends <= at then
      state.granted = state.granted - (held[worker] or 0)
      held[worker] = nil
      redis.call('HDEL', request, 'permits:' .. worker, 'lease:' .. worker, 'term:' .. worker)
      redis.call('HSET', request, 'granted', state.granted)
    else
      nextLease = math.min(nextLease, ends)
    end
  end
  for worker, op in pairs(ops) do
    if not held[worker] then
      if op:sub(-1) == '!' then
        redis.call('HDEL', request, 'op:' .. worker)
      else
        redis.call('HSET', request, 'op:' .. worker, op .. '!')
      end
    end
  end
  return nextLease
end

-- Takes back what any consumer without a permit holds, at most 100 entries of each, and removes a
-- consumer that holds nothing: unchecked, XGROUP DELCONSUMER would delete its entries with it.
-- Returns whether there is more.
local function reclaim(request, work, due)
  local more = false
  for _, consumer in ipairs(redis.call('XINFO', 'CONSUMERS', work, 'workers')) do
    local name, pending = nil, 0
    for i = 1, #consumer, 2 do
      if consumer[i] == 'name' then
        name = consumer[i + 1]
      elseif consumer[i] == 'pending' then
        pending = consumer[i + 1]
      end
    end
    if name ~= '~' and redis.call('HEXISTS', request, 'permits:' .. name) == 0 then
      if pending == 0 then
        redis.call('XGROUP', 'DELCONSUMER', work, 'workers', name)
      else
        for _, entry in ipairs(redis.call('XPENDING', work, 'workers', '-', '+', 100, name)) do
          redis.call('XCLAIM', work, 'workers', '~', 0, entry[1], 'RETRYCOUNT', entry[4], 'JUSTID')
          redis.call('ZADD', due, 0, entry[1])
        end
        more = more or pending > 100
      end
    end
  end
  return more
end
