--- @needs books
-- When the request has to be tended next: at the earliest time at which something ends or begins. math.huge: its tokens
-- wake it when they have been popped. `times`: nextLease, producerUntil, deadline, auditMs · `before`: the epoch
-- whose tokens are watched, or ''
local function nextTend(due, state, books, at, before, times)
  local next = math.huge
  if books.inFlight > 0 or state.granted > 0 then
    next = math.min(at + times.auditMs, times.nextLease)
  end
  -- cure: token epochs, of what a tend minted
  if state.out > 0 and before == '' then
    -- Minted by this tend: no mark covers these tokens before the next one.
    next = math.min(next, at + times.auditMs)
  end
  if state.status == 'open' then
    next = math.min(next, times.producerUntil)
    if before == '' and not state.parked then
      -- Items may come at any time, and only a token that is watched shows that somebody works on them. A parked request
      -- mints none.
      next = math.min(next, at + times.auditMs)
    end
  end
  if books.delayed > 0 then
    -- cure: top-up in retry, when it is due
    next = math.min(next, nextDelayed(due, at))
  end
  if state.status ~= 'cancelling' then
    -- cure: the deadline is on the agenda
    next = math.min(next, times.deadline)
  end
  if state.heldUntil > at then
    -- cure: the end of a hold is on the agenda
    next = math.min(next, state.heldUntil)
  end
  return next
end
