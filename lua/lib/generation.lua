-- The next generation, after `last` and greater than `above`. It is about the server's time, so that the request side
-- can tell an old create by its age. So that it does not run ahead of the clock, generations of several ids may be the
-- same number; `finish` sees to it that those of one id differ.
local function nextGeneration(last, at, above)
  return math.max(at,
    -- cure: generations stay near the clock
    last - at < 1000 and last + 1 or last, above + 1)
end
