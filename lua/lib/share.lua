--- @needs books
-- Whether a worker may have read sub-requests for which it has no permit, and start them as its handlers end. Above a
-- lowered limit, and of a request that is paused or being cancelled, it may not: each handler that ends gives its
-- permit back there. Nor where the first crash is final: what a dead worker had read ahead may never have started.
local function mayReadAhead(state)
  return state.status ~= 'cancelling' and
    -- cure: nothing is read ahead of a paused request
    not state.halted and
    -- cure: nothing is read ahead above a lowered limit
    state.granted <= state.limit and
    -- cure: nothing is read ahead where the first crash is final
    state.maxCrashes > 1
end

-- How many of the sub-requests that nobody has read would be this worker's if they were shared out by permits: it
-- reads no more ahead, so that the last ones do not wait behind its handlers while other workers are idle. -1: it may
-- not read ahead at all. `newest` is the entry that was read last, nil if there are none behind it. Entries are
-- numbered in the order in which they are read, so those behind it are unread; after a redrive numbers are missing,
-- and they are counted.
local function shareOfUnread(state, permits, newest, work, due)
  if not mayReadAhead(state) then
    return -1
  end
  if not newest or permits == 0 then
    return 0
  end
  local unread
  -- cure: after a redrive the unread are counted
  if state.moved > 0 then
    unread = readBooks(state, work, due, state.at).unread
  else
    unread = state.total - 1 - tonumber(newest:sub(#state.generation + 2))
  end
  return math.max(0, math.floor(unread * permits / state.granted))
end
