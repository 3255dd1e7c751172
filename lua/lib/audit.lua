-- The audit of the tokens: what was counted and never came is given up, so that it is minted again. `passed`: the epoch
-- whose tokens have all been popped a grace ago. Returns the epoch whose tokens are still out, or ''.
local function auditTokens(state, passed)
  -- Tokens of the epoch before that were popped a grace ago and never entered are lost.
  -- cure: partial loss
  if state.outBefore > 0 and tonumber(passed) == state.epoch - 1 then
    state.outBefore = 0
  end
  -- cure: token epochs
  if state.outBefore == 0 and state.out > 0 then
    state.outBefore, state.out, state.epoch = state.out, 0, state.epoch + 1
  end
  return state.outBefore > 0 and tostring(state.epoch - 1) or ''
end
