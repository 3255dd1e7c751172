-- Whether more sub-requests failed than are tolerated: a count, or a share of all as '5%'.
local function exceeded(state, tolerated)
  local percent = tolerated:match('^(.+)%%$')
  if percent then
    return state.failed * 100 > tonumber(percent) * state.total
  end
  return state.failed > tonumber(tolerated)
end
