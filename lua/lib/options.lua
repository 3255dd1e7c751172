-- What the options of a request say (field, value, …), and what follows from them: lengths become times too, and the
-- priority of an expedited request names its due time. Returns the fields, and the values by name; `due`: of one that
-- is expedited.
local function optionFields(given, at)
  local fields, value = {}, {}
  local function set(field, to)
    fields[#fields + 1], fields[#fields + 2] = field, to
    value[field] = to
  end
  for i = 1, #given, 2 do
    set(given[i], given[i + 1])
  end
  if value.delayMs then
    set('heldUntil', at + value.delayMs)
    set(
      -- cure: a delay is not believed beyond its length, 2
      'heldFor', at + value.delayMs .. ' ' .. value.delayMs)
  end
  -- cure: the deadline is on the agenda, 4
  if value.deadlineMs then
    set('deadline', at + value.deadlineMs)
  end
  if value.expedite then
    value.due = ('%.0f'):format(math.min(tonumber(value.heldUntil) or at, 2 ^ 44 - 1))
    set('priority', value.priority .. '~' .. value.due)
  end
  return fields, value
end
