-- The results of a request that settled all at once, and briefly, are a string: the position of the only record, and its
-- text (lib/usual-end).

-- The records of such a string between `from` and `to`, as XRANGE has them and answers them: one or none.
local function onlyRecord(text, from, to)
  local position, values = text:match('^([^\30]+)(.*)$')
  local generation, settled = position:match('^(%d+)-(%d+)$')
  -- Negative, 0 or positive, as the record is before `bound`, there, or behind it. `rest` is the number of a bound that
  -- names a generation alone.
  local function compared(bound, rest)
    local first, second = bound:match('(%d+)-?(%d*)$')
    local difference = generation - first
    return difference == 0 and settled - (tonumber(second) or rest) or difference
  end
  local least = from:sub(1, 1) == '(' and 1 or 0
  -- cure: the only record is read once
  if from ~= '-' and compared(from, 0) < least or
    -- cure: the only record is not read before its place
    to ~= '+' and compared(to, math.huge) > 0 then
    return {}
  end
  return { { position, { 'ok', values } } }
end
