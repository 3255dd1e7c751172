--- @needs cancel, ended-early
-- Once too many have failed, ends the request and cancels what nobody runs. Returns how many of those in `due` are left
-- for a later call.
local function cancelIfExceeded(batch, state)
  endIfExceeded(batch.request, state)
  if state.status ~= 'cancelling' then
    return 0
  end
  -- cure: too many failures end it in settle, 2
  batch.inDue = cancelIdle(batch.request, state, batch.work, batch.due, state.at, batch.inDue)
  return batch.inDue
end
