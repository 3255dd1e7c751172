-- How many sub-requests of this request may be held by workers right now.
local function wanted(state, books)
  local active = state.status == 'open' or state.status == 'sealed'
  if not active or state.halted or books.ready <= 0 then
    return 0
  end
  return math.min(state.limit, books.inFlight + books.ready)
end

-- Mints the tokens that are missing: what is wanted, less what is granted and what is outstanding.
-- At most as many are outstanding as permits are granted, at least 1 and at most 32: the first token
-- brings the first worker, each that comes lets more of them come, and a request that nobody serves
-- has one place in its list, so that equal ones take turns (docs/decisions/0007). None while it is
-- parked, as a worker that does not serve its task would only meet them again.
-- Counted here first, pushed by the caller second: a caller that dies in between leaves a token that
-- the epochs find lost. Returns how many the caller has to push.
local function topUp(request, state, books)
  if state.parked then
    return 0
  end
  local outstanding = state.out + state.outBefore
  local most = math.max(1, math.min(32, state.granted))
  local mint = math.min(wanted(state, books) - state.granted, most) - outstanding
  if mint <= 0 then
    return 0
  end
  state.out = state.out + mint
  redis.call('HSET', request, 'out', state.out)
  return mint
end
