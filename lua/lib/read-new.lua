--- @needs read-some
-- Joins what was read to one text: entry, RS, payload, RS, … Each string of a reply costs the client more than joining
-- them costs here, unless they are long: Lua hashes every character of every string that it makes, also of those
-- halfway to the whole. A payload may contain an RS itself. In both cases they are an array: { entry, payload, … }.
local JOINED = 512
local function asText(found)
  local fresh, plain, bytes = {}, true, 0
  for i, entry in ipairs(found) do
    local payload = entry[2][2]
    fresh[2 * i - 1], fresh[2 * i] = entry[1], payload
    bytes = bytes + #payload
    plain = plain and bytes <= JOINED * i and not payload:find('\30', 1, true)
  end
  return plain and table.concat(fresh, '\30') or fresh
end

-- Reads new sub-requests, as `enter` and `settle` answer them. Returns them, how many there are, 1 when there are more that
-- are long, else 0, and the entry that was read last, if there may be more behind it.
local function readNew(work, worker, count, largest)
  if count <= 0 then
    return '', 0, 0
  end
  local found, cut = readSome(work, worker, count, largest)
  local isDry = #found < count and not cut
  return asText(found), #found, cut and 1 or 0, not isDry and found[#found][1] or nil
end
