-- Takes permits from workers that gave no sign of life, and strikes out the numbers of enters that
-- are two looks old. Returns the time at which the next lease ends, and whose lease ended: now, or
-- at an earlier look that could not take everything back.
local function withdrawExpired(request, state, at, grace)
  local all = redis.call('HGETALL', request)
  local held, leases, terms, ops, ended = {}, {}, {}, {}, {}
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
    elseif kind == 'crashed' then
      ended[worker] = true
    end
  end
  for worker in pairs(ended) do
    if held[worker] then
      -- It came back, and what it still held is its own again.
      ended[worker] = nil
      redis.call('HDEL', request, 'crashed:' .. worker)
    end
  end
  local nextLease = math.huge
  for worker, written in pairs(leases) do
    local field, term = 'lease:' .. worker, terms[worker]
    local ends = leaseEnds(request, field, notBeyond(request, field, written, at, term), term, at, grace)
    if ends <= at then
      state.granted = state.granted - (held[worker] or 0)
      held[worker] = nil
      ended[worker] = true
      redis.call('HDEL', request, 'permits:' .. worker, 'lease:' .. worker, 'term:' .. worker,
        'since:' .. worker)
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
  return nextLease, ended
end

-- Takes back what any consumer without a permit holds, at most 100 entries of each, and removes a
-- consumer that holds nothing: unchecked, XGROUP DELCONSUMER would delete its entries with it.
-- What is taken from a worker whose lease `ended` counts a crash for each entry; 'crashed:<worker>'
-- remembers it while there is more. Who merely holds something without a permit (it read late, it
-- closed) did not crash. Returns whether there is more.
local function reclaim(keys, state, ended)
  local request, work, more = keys.request, keys.work, false
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
        local records = {}
        for _, entry in ipairs(redis.call('XPENDING', work, 'workers', '-', '+', 100, name)) do
          if not (ended[name] and settledByCrash(keys, state, name, entry[1], records)) then
            redis.call('XCLAIM', work, 'workers', '~', 0, entry[1], 'RETRYCOUNT', entry[4], 'JUSTID')
            redis.call('ZADD', keys.due, 0, entry[1])
            state.reclaimed = (state.reclaimed or 0) + 1
          end
        end
        recordCrashes(keys, state, records)
        more = more or pending > 100
      end
      if ended[name] and pending > 100 then
        redis.call('HSET', request, 'crashed:' .. name, 1)
      elseif ended[name] then
        redis.call('HDEL', request, 'crashed:' .. name)
      end
    end
  end
  return more
end
