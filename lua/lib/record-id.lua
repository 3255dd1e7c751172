-- Where the next record of outcomes goes: later than every one before it. What a redrive moves counts as
-- settled no more, so without it the number would fall while work is moved that others settle already.
local function recordId(state)
  return state.generation .. '-' .. (state.settled + --[[cure: records rise while a redrive moves]] state.moved)
end
