-- The sub-requests of a small request are packed into one string until a worker comes to it: of each its length, a colon
-- and its payload. A stream takes five kilobytes, however little is in it (docs/decisions/0049-small-submissions.md).

-- Whether they are. Nobody has a permit of such a request, and none of its sub-requests is in flight.
local function isPacked(state, work)
  return state.granted == 0 and state.total <= 32 and redis.call('TYPE', work).ok == 'string'
end
