-- Takes permits from workers that gave no sign of life, and strikes out the numbers of enters that
-- are two looks old. While Redis was away nobody could renew: from when it was back, each has the whole
-- of its lease to do so. Returns the time at which the next lease ends, whose lease ended (now, or
-- at an earlier look that could not take everything back), and what is known of why.
local function withdrawExpired(request, state, at, resumedAt)
  local all = redis.call('HGETALL', request)
  local held, leases, terms, ops, ended, causes = {}, {}, {}, {}, {}, {}
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
    elseif kind == 'cause' then
      causes[worker] = { at = tonumber(all[i + 1]:match('^%d+')), known = all[i + 1]:match(' (.+)$') }
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
    local ends = math.max(written, resumedAt + (terms[worker] or 0))
    if ends <= at then
      if causes[worker] and causes[worker].at < written - (terms[worker] or 0) then
        -- It went on after that, and ended of something else.
        causes[worker] = nil
        redis.call('HDEL', request, 'cause:' .. worker)
      end
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
  for worker in pairs(causes) do
    if not held[worker] and not ended[worker] then
      redis.call('HDEL', request, 'cause:' .. worker)
    end
  end
  return nextLease, ended, causes
end

-- Takes back what any consumer without a permit holds, at most 100 entries of each, and removes a
-- consumer that holds nothing: unchecked, XGROUP DELCONSUMER would delete its entries with it.
-- What is taken from a worker whose lease `ended` counts a crash for each entry; 'crashed:<worker>'
-- remembers it while there is more. Who merely holds something without a permit (it read late, it
-- closed) did not crash. Returns whether there is more.
local function reclaim(keys, state, ended, causes)
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
        local known, cause = pcall(cjson.decode, causes[name] and causes[name].known or '')
        for _, entry in ipairs(redis.call('XPENDING', work, 'workers', '-', '+', 100, name)) do
          if not (ended[name] and settledByCrash(keys, state, name, entry[1], records, known and cause)) then
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
        redis.call('HDEL', request, 'crashed:' .. name, 'cause:' .. name)
      end
    end
  end
  return more
end
