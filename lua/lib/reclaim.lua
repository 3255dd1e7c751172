--- @needs terms, crashes
-- Lua unpacks no more than some thousand arguments.
local function someAtATime(command, key, args)
  for i = 1, #args, 1000 do
    redis.call(command, key, unpack(args, i, math.min(i + 999, #args)))
  end
end

-- Takes permits from workers that gave no sign of life, and strikes out the numbers of enters that
-- are two looks old. At most 250 leases are found ended at one look. Returns the time at which the next lease
-- ends, whose lease ended (now, or at an earlier look that could not take everything back), who holds permits,
-- and what is known of why a lease ended.
local function withdrawExpired(request, state, at, grace, all)
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
  local nextLease, room, marked, old = math.huge, 250, {}, {}
  for worker, written in pairs(leases) do
    local field, term = 'lease:' .. worker, terms[worker]
    local ends = leaseEnds(request, field, notBeyond(request, field, written, at, term), term, at, grace)
    if ends <= at and room == 0 then
      nextLease = at + 1
    elseif ends <= at then
      room = room - 1
      if causes[worker] and causes[worker].at < written - (term or 0) then
        -- It went on after that, and ended of something else.
        causes[worker] = nil
        old[#old + 1] = 'cause:' .. worker
      end
      state.granted = state.granted - (held[worker] or 0)
      held[worker] = nil
      ended[worker] = true
      for _, kind in ipairs({ 'permits:', 'lease:', 'term:', 'since:' }) do
        old[#old + 1] = kind .. worker
      end
    else
      nextLease = math.min(nextLease, ends)
    end
  end
  if room < 250 then
    redis.call('HSET', request, 'granted', state.granted)
  end
  for worker, op in pairs(ops) do
    if not held[worker] and op:sub(-1) == '!' then
      old[#old + 1] = 'op:' .. worker
    elseif not held[worker] then
      marked[#marked + 1] = 'op:' .. worker
      marked[#marked + 1] = op .. '!'
    end
  end
  for worker in pairs(causes) do
    if not held[worker] and not ended[worker] then
      old[#old + 1] = 'cause:' .. worker
    end
  end
  someAtATime('HSET', request, marked)
  someAtATime('HDEL', request, old)
  return nextLease, ended, held, causes
end

-- The consumers that may have to be looked at, each with its name and how many entries it has pending. Of a page of
-- workers it is those without a permit, and only whether there are any.
local function consumersOf(work, names, holding)
  local consumers = {}
  for _, name in ipairs(names or {}) do
    if not holding[name] then
      local some = redis.call('XPENDING', work, 'workers', '-', '+', 1, name)
      consumers[#consumers + 1] = { name, some[1] and math.huge or 0 }
    end
  end
  for _, consumer in ipairs(names and {} or redis.call('XINFO', 'CONSUMERS', work, 'workers')) do
    local name, pending = nil, 0
    for i = 1, #consumer, 2 do
      if consumer[i] == 'name' then
        name = consumer[i + 1]
      elseif consumer[i] == 'pending' then
        pending = consumer[i + 1]
      end
    end
    consumers[#consumers + 1] = { name, pending }
  end
  return consumers
end

-- Takes back what any consumer without a permit holds, at most 100 entries of each and 200 of all, or about a
-- mebibyte of payloads that are kept as failed, and removes a consumer that holds nothing: unchecked, XGROUP
-- DELCONSUMER would delete its entries with it.
-- What is taken from a worker whose lease `ended` counts a crash for each entry; 'crashed:<worker>'
-- remembers it while there is more. Who merely holds something without a permit (it read late, it
-- closed) did not crash. Returns whether there is more.
local function reclaim(keys, state, ended, holding, causes, names)
  local request, work, more, room = keys.request, keys.work, false, 200
  local left, over, due = {}, {}, {}
  state.kept = 0
  for _, consumer in ipairs(consumersOf(work, names, holding)) do
    local name, pending = unpack(consumer)
    if name ~= '~' and not holding[name] then
      if pending == 0 then
        redis.call('XGROUP', 'DELCONSUMER', work, 'workers', name)
      else
        local records, some = {}, math.min(100, room)
        local known, cause = pcall(cjson.decode, causes[name] and causes[name].known or '')
        local held = some > 0 and redis.call('XPENDING', work, 'workers', '-', '+', some, name) or {}
        if #held < some then
          pending = #held
        end
        for _, entry in ipairs(held) do
          if state.kept >= 1048576 then
            room = 0
            break
          end
          room, pending = room - 1, pending - 1
          if not (ended[name] and settledByCrash(keys, state, name, entry[1], records, known and cause)) then
            redis.call('XCLAIM', work, 'workers', '~', 0, entry[1], 'RETRYCOUNT', entry[4], 'JUSTID')
            due[#due + 1] = 0
            due[#due + 1] = entry[1]
            state.reclaimed = (state.reclaimed or 0) + 1
          end
        end
        recordCrashes(keys, state, records)
        more = more or pending > 0
      end
      if ended[name] and pending > 0 then
        left[#left + 1] = 'crashed:' .. name
        left[#left + 1] = 1
      elseif ended[name] then
        over[#over + 1] = 'crashed:' .. name
        over[#over + 1] = 'cause:' .. name
      end
    end
  end
  someAtATime('ZADD', keys.due, due)
  someAtATime('HSET', request, left)
  someAtATime('HDEL', request, over)
  return more
end
