--- @host ARGV
-- Whether the arguments from `first` to `last` name each of the packed sub-requests once. Then they may be settled
-- together without a stream.
local function settlesAll(state, first, last)
  if last - first + 1 ~= state.total then
    return false
  end
  local left = {}
  for index = 0, state.total - 1 do
    left[state.generation .. '-' .. index] = true
  end
  for i = first, last do
    if not left[ARGV[i]] then
      return false
    end
    left[ARGV[i]] = nil
  end
  return true
end
