--- @needs now, audit, compact
-- The tend of a compact request (lib/compact) that nobody has: only its token may be lost. It decides as `tend` does.

-- Returns the reply; nil: it needs its full form, and nothing was done.
local function tendCompact(request, generation, passed, auditMs)
  local c = readCompact(request)
  if c[GENERATION] ~= generation then
    return nil
  end
  if c[COMPLETED_AT] > 0 then
    return { 'complete', c[OUTCOME], 0 }
  end
  if
    -- cure: a tend expands what a worker has
    c[WORKER] ~= '' then
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
  local tokens = { out = c[OUT], outBefore = c[OUT_BEFORE], epoch = c[EPOCH] }
  local before = auditTokens(tokens, passed)
  local isHeld = heldUntil > at
  local mint =
    -- cure: a compact request that is held has no token
    not isHeld and tokens.out + tokens.outBefore == 0 and 1 or 0
  c[OUT], c[OUT_BEFORE], c[EPOCH] = tokens.out + mint, tokens.outBefore, tokens.epoch
  redis.call('SET', request, cmsgpack.pack(c))
  -- Minted by this tend: no mark covers this token before the next one.
  local next = math.min(deadline, isHeld and heldUntil or mint > 0 and at + auditMs or math.huge)
  return { 'ok', mint, c[EPOCH], c[PRIORITY], before, next < math.huge and next or 0, 0, c[TASK], 0, '' }
end
