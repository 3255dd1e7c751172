-- Times of a timed set. A time that was given as a length, '+ms', has that length as its fraction: 1 + 29 · log2(ms + 1)
-- in 1024ths, rounded up. So the length is known to within 2.5 %, never as too short, in the 12 bits that a score has
-- left. Whole numbers are times that the user named, or that an older release wrote; they are believed as they are.
local function timedMark(ms)
  local mark = 1 + math.ceil(29 * math.log(ms + 1) / math.log(2))
  return mark < 1024 and mark / 1024 or 0
end

-- A time that lies further ahead than its length was written before the clock went back.
local function timedBelieved(time, at)
  local mark = time % 1
  -- cure: a time of the user is no length
  if mark == 0 then
    return time
  end
  -- cure: a delay is not shortened by a clock that was ahead meanwhile
  return math.min(time, at + math.floor(2 ^ ((mark * 1024 - 1) / 29) - 0.5) + mark)
end

-- A whole number of up to 16 digits as text; tostring would shorten it.
local function timedNumber(number)
  return string.format('%.0f', number)
end

-- A time of a key as text, with its fraction.
local function timedText(time)
  return string.format('%.17g', time)
end

-- The server time that is meant: a time as it is, or '+ms' from now.
local function timedAt(time, at)
  local ms = tonumber(time:match('^%+(%d+)$'))
  return ms and at + ms + --[[cure: a delay is believed for its length, 2]] timedMark(ms) or tonumber(time)
end
