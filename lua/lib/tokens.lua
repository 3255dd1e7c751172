-- How many sub-requests of this request may be held by workers right now.
local function wanted(state, books)
  local active = state.status == 'open' or state.status == 'sealed'
  if not active or state.halted or books.ready <= 0 then
    return 0
  end
  return math.min(state.limit, books.inFlight + books.ready)
end

-- Mints the tokens that are missing: what is wanted, less what is granted and what is outstanding,
-- never more than 32 outstanding; none while it is parked, as a worker that does not serve its task
-- would only meet them again. Counted here first, pushed by the caller second: a caller that dies in
-- between leaves a token that the epochs find lost. Returns how many the caller has to push.
local function topUp(request, state, books)
  if state.parked then
    return 0
  end
  local outstanding = state.out + state.outBefore
  local mint = math.min(wanted(state, books) - state.granted, 32) - outstanding
  if mint <= 0 then
    return 0
  end
  state.out = state.out + mint
  redis.call('HSET', request, 'out', state.out)
  return mint
end
