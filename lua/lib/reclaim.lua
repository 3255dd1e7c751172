--- @needs some-at-a-time, crashes, cost
-- The consumers to be checked, each with its name and how many entries it has pending. Of a page of workers (`names`)
-- they are those without a permit, and only whether they have any is known.
local function consumersOf(work, names, holding)
  local consumers = {}
  for _, name in ipairs(names or {}) do
    if not holding[name] then
      local some = redis.call('XPENDING', work, 'workers', '-', '+', 1, name)
      consumers[#consumers + 1] = { name, --[[cure: a crash is one at any page]] some[1] and math.huge or 0 }
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

-- Takes back what one consumer has, as far as `page` has room. `crashed`: its lease ended, so each entry counts a
-- crash. Returns how many of its `pending` entries are left.
local function takeBack(batch, state, page, name, pending, crashed, cause)
  local records, some = {}, --[[cure: a tend takes back so many in all]] math.min(100, page.room)
  local found = some > 0 and redis.call('XPENDING', batch.work, 'workers', '-', '+', some, name) or {}
  if #found < some then
    pending = #found
  end
  for _, entry in ipairs(found) do
    if state.kept >= 1048576 then
      page.room = 0
      break
    end
    page.room, pending = page.room - 1, pending - 1
    page.crashes = page.crashes + (crashed and 1 or 0)
    if not (
      -- cure: a late read is no crash
      crashed and settledByCrash(batch, state, name, entry[1], records, cause)) then
      redis.call('XCLAIM', batch.work, 'workers', '~', 0, entry[1], 'RETRYCOUNT', entry[4], 'JUSTID')
      page.due[#page.due + 1] = 0
      page.due[#page.due + 1] = entry[1]
      state.reclaimed = (state.reclaimed or 0) + 1
    end
  end
  recordCrashes(batch, state, records)
  return pending
end

-- Takes back what any consumer without a permit has: at most 100 entries of each and 200 of all, or about a mebibyte of
-- payloads that are kept as failed. Removes a consumer that has nothing; unchecked, XGROUP DELCONSUMER would delete
-- its entries with it.
-- What is taken from a worker whose lease `ended` counts a crash for each entry; 'crashed:<worker>' remembers that
-- while there is more. A worker that has entries without a permit (it read late, or it closed) did not crash.
-- Returns whether there is more.
local function reclaim(batch, state, ended, holding, causes, names)
  local request, work, more = batch.request, batch.work, false
  local page, left, over = { room = 200, due = {}, crashes = 0 }, {}, {}
  state.kept = 0
  for _, consumer in ipairs(consumersOf(work, names, holding)) do
    local name, pending = unpack(consumer)
    -- cure: reclaim from any consumer without a permit
    if name ~= '~' and not holding[name] then
      -- cure: consumer deleted only when empty
      if pending == 0 then
        -- cure: consumer deleted only when empty, 2
        redis.call('XGROUP', 'DELCONSUMER', work, 'workers', name)
      else
        local known, cause = pcall(cjson.decode, causes[name] and causes[name].known or '')
        pending = takeBack(batch, state, page, name, pending, ended[name], known and cause)
        -- cure: a tend takes back so many in all, 3
        more = more or pending > 0
      end
      if ended[name] and pending > 0 then
        -- cure: a tend takes back so many in all, 2
        left[#left + 1] = 'crashed:' .. name
        left[#left + 1] = 1
      elseif ended[name] then
        over[#over + 1] = 'crashed:' .. name
        over[#over + 1] = 'cause:' .. name
      end
    end
  end
  if page.crashes > 0 then
    -- What its handlers used ended with their worker.
    -- cure: a crash is an attempt
    redis.call('HSET', request, 'cost', costWith(redis.call('HGET', request, 'cost') or '', { { 0, page.crashes } }))
  end
  someAtATime('ZADD', batch.due, page.due)
  someAtATime('HSET', request, left)
  someAtATime('HDEL', request, over)
  return more
end
