--- @needs now, audit, compact
-- The tend of a compact request (lib/compact) that nobody has: only its token may be lost. It decides as `tend` does.

-- Returns the reply; nil: it needs its full form, and nothing was done.
local function tendCompact(request, generation, passed, auditMs)
  local c = readCompact(request)
  if c[1] ~= generation then
    return nil
  end
  if c[26] > 0 then
    return { 'complete', 'succeeded', 0 }
  end
  if
    -- cure: a tend expands what a worker has
    c[6] ~= '' then
    return nil
  end
  local at, value = now(), otherFieldsOf(c)
  local heldUntil, deadline = tonumber(value.heldUntil) or 0, tonumber(value.deadline) or math.huge
  if
    -- cure: the deadline of a compact request ends it
    deadline <= at or
    -- cure: a deadline is not believed beyond its length, of a compact request
    value.deadline and deadline > at + value.deadlineMs or
    -- cure: a delay is not believed beyond its length, of a compact request
    value.delayMs and heldUntil > at + value.delayMs then
    return nil
  end
  local tokens = { out = c[3], outBefore = c[4], epoch = c[5] }
  local before = auditTokens(tokens, passed)
  local isHeld = heldUntil > at
  local mint =
    -- cure: a compact request that is held has no token
    not isHeld and tokens.out + tokens.outBefore == 0 and 1 or 0
  c[3], c[4], c[5] = tokens.out + mint, tokens.outBefore, tokens.epoch
  redis.call('SET', request, cmsgpack.pack(c))
  -- Minted by this tend: no mark covers this token before the next one.
  local next = math.min(deadline, isHeld and heldUntil or mint > 0 and at + auditMs or math.huge)
  return { 'ok', mint, c[5], c[11], before, next < math.huge and next or 0, 0, c[13], 0, '' }
end
