--- @needs books
-- Cancels what no worker runs: what was never read, all at once, by moving the group to the end of the stream;
-- what is in `due`, at most 500 a call. What is in flight is settled by its worker. Returns how many in `due` are
-- left for a later call. `inDue`: how many are in `due`, if the caller knows.
local function cancelIdle(request, state, work, due, at, inDue)
  local books = readBooks(state, work, due, at, inDue)
  if books.unread > 0 then
    local last = state.generation .. '-' .. (state.total - 1)
    redis.call('XGROUP', 'SETID', work, 'workers', last, 'ENTRIESREAD', state.total)
    state.cancelled = state.cancelled + books.unread
  end
  local returned = inDue == 0 and {} or redis.call('ZRANGE', due, 0, 499)
  for _, id in ipairs(returned) do
    state.cancelled = state.cancelled + redis.call('XACK', work, 'workers', id)
    redis.call('ZREM', due, id)
  end
  state.settled = state.succeeded + state.failed + state.cancelled
  state.status = 'cancelling'
  redis.call('HSET', request, 'status', 'cancelling', 'cancelled', state.cancelled)
  return books.dueNow + books.delayed - #returned
end
