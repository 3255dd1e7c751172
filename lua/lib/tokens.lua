-- How many permits of this request workers may have right now.
local function wanted(state, books)
  local active = state.status == 'open' or state.status == 'sealed'
  if not active or
    -- cure: a paused request grants, mints and hands out nothing
    state.halted or books.ready <= 0 then
    return 0
  end
  return math.min(state.limit, books.inFlight + books.ready)
end

-- Mints the tokens that are missing: what is wanted, less what is granted and what is outstanding.
-- At most as many are outstanding as permits are granted, and of more than 4 no more than a quarter of the permits and
-- no more than 32: tokens that were minted together stand side by side in the list, so they bring as many workers at
-- once, all of which are away from others. The first token brings the first worker, and each that comes lets more of
-- them come. A request that nobody serves has one place in its list, so that equal ones take turns
-- (docs/decisions/0007). None while it is parked, as a worker that does not serve its task would only meet them again.
-- Counted here first, pushed by the caller second: a caller that dies in between leaves a token that
-- the epochs find lost. Returns how many the caller has to push.
local function topUp(request, state, books)
  -- cure: a parked request does not stop workers that serve its task, 2
  if state.parked then
    return 0
  end
  local outstanding = state.out + state.outBefore
  local most = math.max(4, math.min(32, math.floor(state.granted / 4)))
  most = math.max(1, math.min(most, state.granted))
  local mint = math.min(wanted(state, books) - state.granted, most) - outstanding
  if mint <= 0 then
    return 0
  end
  state.out = state.out + mint
  -- cure: tokens counted by the leave
  redis.call('HSET', request, 'out', state.out)
  return mint
end
