--- @needs digits
-- The cost of an attempt is JSON: µs for which its handler ran, or [µs, attempts, name, number, …] with what it used. It is
-- sent for each outcome. The state keeps the sum of those that count, in the longer form.

-- So many names have a sum of their own in one request; what the others name is added up as `other`.
local MOST_NAMES = 20

-- A number with all its digits, which cjson cuts. A sum is never infinite, or it could not be read again.
local function amountText(n)
  return n % 1 == 0 and n < 2 ^ 53 and digits(n) or string.format('%.17g', math.min(n, 1.7976931348623157e308))
end

-- Adds `costs` to `kept`, the sum so far as text; '': none. Returns the text.
local function costWith(kept, costs)
  local us, attempts, names, used = 0, 0, {}, {}
  local function add(cost)
    us, attempts = us + cost[1], attempts + cost[2]
    for i = 3, #cost, 2 do
      local name = cost[i]
      if not used[name] and #names >= MOST_NAMES then
        name = 'other'
      end
      if not used[name] then
        names[#names + 1], used[name] = name, 0
      end
      used[name] = used[name] + cost[i + 1]
    end
  end
  if kept ~= '' then
    add(cjson.decode(kept))
  end
  for i = 1, #costs do
    local cost = costs[i]
    if type(cost) == 'number' then
      us, attempts = us + cost, attempts + 1
    else
      add(cost)
    end
  end
  local text = '[' .. digits(us) .. ',' .. digits(attempts)
  for _, name in ipairs(names) do
    text = text .. ',' .. cjson.encode(name) .. ',' .. amountText(used[name])
  end
  return text .. ']'
end
