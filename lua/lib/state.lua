--- @needs now
-- Reads the numbers that the books, the permits and the tokens are kept by. Returns nil when the
-- key holds no life of this generation (never created, dropped, voided, older or newer). `at` is the
-- time of the whole script; a request is halted while it is paused, or held back until later.
local function readState(request, generation)
  local v = redis.call('HMGET', request, 'generation', 'status', 'total', 'succeeded', 'failed',
    'cancelled', 'limit', 'granted', 'out', 'outBefore', 'epoch', 'priority', 'paused', 'parked',
    'heldUntil', 'moved')
  if v[1] ~= generation or v[2] == 'void' or v[2] == 'dropped' then
    return nil
  end
  local state = {
    generation = generation,
    status = v[2],
    total = tonumber(v[3]),
    succeeded = tonumber(v[4]),
    failed = tonumber(v[5]),
    cancelled = tonumber(v[6]),
    limit = tonumber(v[7]),
    granted = tonumber(v[8]),
    out = tonumber(v[9]),
    outBefore = tonumber(v[10]),
    epoch = tonumber(v[11]),
    priority = v[12],
    parked = v[14] == '1',
    heldUntil = tonumber(v[15]) or 0,
    -- Taken back by a redrive in this life: what is settled falls by it and rises again.
    moved = tonumber(v[16]) or 0,
    at = now(),
  }
  state.halted = v[13] == '1' or state.heldUntil > state.at
  state.settled = state.succeeded + state.failed + state.cancelled
  return state
end
