--- @needs compact
-- The first enter of a compact request (lib/compact), if it reads all of it. It decides as `enter` does.

-- Gives `worker` its permits: for `want` slots, with up to `most` sub-requests, and as `ahead` and `quick` allow. `epoch`
-- is that of its one token. Returns how many permits it has, and the request. Returns nil and writes nothing if the
-- request needs its full form.
local function enterCompact(request, generation, worker, op, want, at, leaseMs, isServed, most, ahead, quick, epoch)
  local c = readCompact(request)
  local total, limit, present = c[TOTAL], tonumber(c[LIMIT]), c[EPOCH]
  if c[GENERATION] ~= generation or c[COMPLETED_AT] > 0 or
    -- cure: a compact request has one worker
    c[WORKER] ~= '' or
    -- cure: a compact request is for workers that serve its task
    not isServed(c[TASK]) or
    -- cure: tokens of an old priority die, of a compact request
    epoch < present - 1 or
    -- cure: a compact request that is held again is not entered
    c[SINCE] > at then
    return nil
  end
  local grant = math.min(want, limit, total)
  local spare = grant * (grant < limit and quick or math.max(ahead, quick))
  if grant == 0 or
    -- cure: of a compact request all is read
    total > math.min(grant + spare, most) then
    return nil
  end
  if epoch == present and c[OUT] > 0 then
    c[OUT] = c[OUT] - 1
  elseif epoch == present - 1 and c[OUT_BEFORE] > 0 then
    c[OUT_BEFORE] = c[OUT_BEFORE] - 1
  end
  c[WORKER], c[PERMITS], c[OP], c[SINCE], c[LEASE_ENDS], c[LEASE_MS] = worker, grant, op, at, at + leaseMs, leaseMs
  redis.call('SET', request, cmsgpack.pack(c))
  return grant, c
end

-- What it reads: all sub-requests, in one text as `readNew` joins them.
local function entriesOfCompact(c)
  local prefix, index = c[GENERATION] .. '-', -1
  if c[TOTAL] == 1 then
    return prefix .. '0\30' .. c[PAYLOADS]
  end
  local function withEntry(payload)
    index = index + 1
    return prefix .. index .. '\30' .. payload .. '\30'
  end
  return ((c[PAYLOADS] .. '\30'):gsub('([^\30]*)\30', withEntry)):sub(1, -2)
end
