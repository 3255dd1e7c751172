-- A whole number as text. Where a script passes a number to Redis, or joins one to a text, it is formatted as though it
-- had a fraction: 0.4 µs for a time, 0.2 for a small number. This takes 0.17 and 0.14.
local format = string.format
local function digits(n)
  return format('%d', n)
end
