--- @needs now, audit, compact
-- The tend of a compact request (lib/compact) that nobody has: only its token may be lost. It decides as `tend` does.

-- Returns the reply; nil: a worker has it, or it is another generation, and nothing was done.
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
  local tokens = { out = c[3], outBefore = c[4], epoch = c[5] }
  local before = auditTokens(tokens, passed)
  local mint = tokens.out + tokens.outBefore == 0 and 1 or 0
  c[3], c[4], c[5] = tokens.out + mint, tokens.outBefore, tokens.epoch
  redis.call('SET', request, cmsgpack.pack(c))
  -- Minted by this tend: no mark covers this token before the next one.
  local next = mint > 0 and now() + auditMs or 0
  return { 'ok', mint, c[5], c[11], before, next, 0, c[13], 0, '' }
end
