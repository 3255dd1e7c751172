--- @needs compact
-- The first enter of a compact request (lib/compact), if it reads all of it. It decides as `enter` does.

-- What a worker is sent of a request that it has entered: behind `head` its priority, its task, its policy and its payloads.
local function enteredText(head, c)
  return table.concat({ head, c[11], c[13], c[15], c[25] }, '\30')
end

-- Gives `worker` its permits: for `want` slots, with up to `most` sub-requests, and as `ahead` and `quick` allow. `epoch`
-- is that of its one token. Returns how many it has, and the request; nil: a compact request does not stand it, and
-- nothing was done.
local function enterCompact(request, generation, worker, op, want, leaseEnds, leaseMs, tasks, most, ahead, quick, epoch)
  local c = readCompact(request)
  local current, total, out, outBefore, present, holder, _, _, _, _, _, limitText, task = unpack(c, 1, 13)
  if current ~= generation or c[26] > 0 or
    -- cure: a compact request has one worker
    holder ~= '' or
    -- cure: a compact request is for workers that serve its task
    tasks ~= '*' and not (task ~= '' and tasks:find(' ' .. task .. ' ', 1, true)) or
    -- cure: tokens of an old priority die, of a compact request
    epoch < present - 1 then
    return nil
  end
  local limit = tonumber(limitText)
  local grant = math.min(want, limit, total)
  local spare = grant * (grant < limit and quick or math.max(ahead, quick))
  if grant == 0 or
    -- cure: of a compact request all is read
    total > math.min(grant + spare, most) then
    return nil
  end
  if epoch == present and out > 0 then
    c[3] = out - 1
  elseif epoch == present - 1 and outBefore > 0 then
    c[4] = outBefore - 1
  end
  c[6], c[7], c[8], c[9], c[10] = worker, grant, op, leaseEnds, leaseMs
  redis.call('SET', request, cmsgpack.pack(c))
  return grant, c
end
