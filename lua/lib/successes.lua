--- @needs last-read, reported
--- @host ARGV
-- A success counts from the call whose XACK returns 1, also when its worker has lost its lease. Those that surely
-- belonged to the worker were acknowledged, and counted, before.

-- Whether another worker owns a pending entry, and nobody else has read it. `owned` is the answer of XPENDING; each read
-- adds 1 to its deliveries, and only a return by the reader takes that 1 back. Then the server lost the read that the
-- worker reports of. It may have lost the append too, so that the entry is another item.
local function isUnread(batch, owned)
  return owned[2] ~= batch.worker and owned[2] ~= '~' and owned[4] < 2
end

-- Counts one success; returns whether it counts. A worker that lost its lease may take the entry from its present
-- owner: from then on no worker is believed to own all that it reports (`contested`).
local function succeed(batch, state, id, owned)
  if owned and owned[2] ~= batch.worker and owned[2] ~= '~' then
    redis.call('HSET', batch.request, 'contested', 1)
  end
  -- cure: XACK-gated counting, of a part of a batch
  if redis.call('XACK', batch.work, 'workers', id) == 0 then
    return false
  end
  -- While `due` is empty, this entry was not in it either.
  if batch.inDue > 0 then
    batch.leavesDue[#batch.leavesDue + 1] = id
  end
  state.succeeded = state.succeeded + 1
  return true
end

-- Counts each success on its own: the entries are the arguments from `first` to `last`. Returns what is refused, as
-- `recordSuccesses` takes it.
local function succeedOneByOne(batch, state, first, last)
  local refused = {}
  for i = first, last do
    local id = ARGV[i]
    local owned = redis.call('XPENDING', batch.work, 'workers', id, id, 1)[1]
    -- cure: who never read an entry does not settle it
    if owned and isUnread(batch, owned) then
      refused[i - first + 1] = ''
    else
      refused[i - first + 1] = not succeed(batch, state, id, owned) and '' or nil
      noteReported(batch, id, id:sub(batch.indexAt))
    end
  end
  return refused
end

-- Refuses those of `places` (index -> place) that the latest settles of this generation have recorded, `count` at
-- most.
local function refuseRecorded(batch, state, places, count, refused)
  local function refuse(index)
    if places[index] then
      refused[places[index]] = ''
      places[index] = nil
      count = count - 1
    end
  end
  local to = '+'
  for _ = 1, 64 do
    local page = redis.call('XREVRANGE', batch.results, to, state.generation .. '-0', 'COUNT', 16)
    for _, entry in ipairs(page) do
      for i = 1, #entry[2], 2 do
        refuse(entry[2][i]:match('^!(%d+)$'))
        for index in (entry[2][i] == 'ok' and entry[2][i + 1] or ''):gmatch('\30(%d+) ') do
          refuse(index)
        end
      end
    end
    if count <= 0 or #page < 16 then
      return
    end
    to = '(' .. page[16][1]
  end
end

-- XACK acknowledged fewer successes than the worker reported: somebody who did not ask for this worker's entries has
-- settled some. What is recorded already is not recorded again. What the server does not know to have been read will be
-- read again, and is recorded then. From here on each success is asked for. Returns what is refused.
local function refuseForgotten(batch, state, first, last, acknowledged)
  -- cure: outcomes that others recorded are not recorded together, 2
  redis.call('HSET', batch.request, 'contested', 1)
  local known, refused, places, count = acknowledged > 0 and lastRead(batch.work) or -1, {}, {}, 0
  for i = first, last do
    local index = ARGV[i]:match('%d+$')
    if tonumber(index) > known then
      refused[i - first + 1] = ''
    else
      places[index] = i - first + 1
      count = count + 1
    end
  end
  -- cure: outcomes that others recorded are not recorded together
  if count > acknowledged and state.keepResults then
    refuseRecorded(batch, state, places, count - acknowledged, refused)
  end
  return refused
end

-- What follows the one XACK of successes that all belonged to this worker: the entries are the arguments from `first`
-- to `last`. Returns what is refused, as `recordSuccesses` takes it; nil: nothing.
local function succeededTogether(batch, state, first, last, acknowledged)
  for i = batch.hasProgress and first or last + 1, last do
    batch.ended[#batch.ended + 1] = ARGV[i]:sub(batch.indexAt)
  end
  if acknowledged < last - first + 1 then
    return refuseForgotten(batch, state, first, last, acknowledged)
  end
  if batch.pinned and first <= last then
    redis.call('XDEL', batch.work, unpack(ARGV, first, last))
  end
  return nil
end

-- Records the results of all successes as the one text in which they came: a record separator, which no JSON can
-- contain, before the index and the result of each. `refused`: '' at the place of each that does not count, which is
-- taken out; nil when all count.
local function recordSuccesses(batch, state, values, refused)
  if not state.keepResults then
    return
  end
  if refused then
    local place = 0
    values = values:gsub('\30[^\30]*', function()
      place = place + 1
      return refused[place]
    end)
  end
  if values ~= '' then
    batch.records[#batch.records + 1] = 'ok'
    batch.records[#batch.records + 1] = values
    state.kept = state.kept + #values
  end
end

-- Counts and records the successes: the entries are the arguments from `first` to `last`. `acknowledged`: how many of
-- them were so already, together; nil: they may not all belong to the worker, and each is asked for.
local function settleSuccesses(batch, state, first, last, values, costs, acknowledged)
  local refused
  if acknowledged then
    refused = succeededTogether(batch, state, first, last, acknowledged)
  else
    refused = succeedOneByOne(batch, state, first, last)
  end
  for i = batch.checkpoints and first or last + 1, last do
    -- cure: the checkpoint of another item stays
    if not (refused and refused[i - first + 1]) then
      -- cure: a checkpoint goes with its success, 2
      batch.tried[#batch.tried + 1] = ARGV[i]:sub(batch.indexAt) .. ':checkpoint'
    end
  end
  recordSuccesses(batch, state, values, refused)
  for i = 1, last - first + 1 do
    if --[[cure: a cost counts with its success]] not (refused and refused[i]) then
      batch.costs[#batch.costs + 1] = costs[i]
    end
  end
end
