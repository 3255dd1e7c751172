--- @needs now, digits, compact
-- Reads the state of a request, and `more` of its fields, whose values are answered behind it. Returns nil when the key
-- has no request of this generation: it was never created, was dropped or voided, or is an older or newer one. `at` is
-- the time of the whole script. A request is halted while it is paused or held until a later time. `moved` counts what
-- a redrive has taken back in this generation: the number of settled sub-requests falls by it and rises again.
local function readState(request, work, generation, ...)
  local v = stateFields(request, work,
    'generation', 'status', 'priority', 'paused', 'parked',
    'total', 'succeeded', 'failed', 'cancelled', 'limit', 'granted', 'out', 'outBefore', 'epoch', 'heldUntil', 'moved',
    ...)
  if v[1] ~= generation or v[2] == 'void' or v[2] == 'dropped' then
    return nil
  end
  local at, heldUntil = now(), v[15] and tonumber(v[15]) or 0
  -- cure: a parked request does not stop workers that serve its task
  local halted = v[4] == '1' or heldUntil > at
  local succeeded, failed, cancelled = countOf(v[7]), countOf(v[8]), countOf(v[9])
  local state = {
    at = at, generation = generation, status = v[2], priority = v[3],
    halted = halted, parked = v[5] == '1',
    total = countOf(v[6]), succeeded = succeeded, failed = failed, cancelled = cancelled,
    settled = succeeded + failed + cancelled,
    limit = countOf(v[10]), granted = countOf(v[11]), out = countOf(v[12]), outBefore = countOf(v[13]),
    epoch = countOf(v[14]), heldUntil = heldUntil, moved = v[16] and tonumber(v[16]) or 0,
  }
  return state, unpack(v, 17)
end
