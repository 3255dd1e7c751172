-- Notes that a sub-request has failed: its error, and its payload, so that it can be redriven. `tried`: how many attempts
-- it had.
local function noteFailed(failed, state, index, failure, payload, tried, crashes)
  redis.call('HSET', failed, index, failure, index .. ':payload', payload, index .. ':runs',
    state.generation .. ' ' .. tried .. ' ' .. crashes)
  state.kept = state.kept + #failure + #payload
end
