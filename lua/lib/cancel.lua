--- @needs books
-- Cancels everything that no worker runs: what was never read at once, by moving the group to the
-- end of the stream; what is parked in `due` at most 500 a call. In flight settles itself. Returns
-- how many parked ones are left for a later call. `held`: how many are parked, if the caller knows.
local function cancelIdle(request, state, work, due, at, held)
  local books = readBooks(state, work, due, at, held)
  if books.unread > 0 then
    local last = state.generation .. '-' .. (state.total - 1)
    redis.call('XGROUP', 'SETID', work, 'workers', last, 'ENTRIESREAD', state.total)
    state.cancelled = state.cancelled + books.unread
  end
  local parked = held == 0 and {} or redis.call('ZRANGE', due, 0, 499)
  for _, id in ipairs(parked) do
    state.cancelled = state.cancelled + redis.call('XACK', work, 'workers', id)
    redis.call('ZREM', due, id)
  end
  state.settled = state.succeeded + state.failed + state.cancelled
  state.status = 'cancelling'
  redis.call('HSET', request, 'status', 'cancelling', 'cancelled', state.cancelled)
  return books.dueNow + books.delayed - #parked
end
