-- What was read, as one text: entry, RS, payload, RS, …, because each
-- string of a reply costs the client more than it costs to join them here. A payload is opaque: where one
-- holds an RS itself, they come as they are: { entry, payload, … }.
local function asText(found)
  local fresh, plain = {}, true
  for i, entry in ipairs(found) do
    local payload = entry[2][2]
    fresh[2 * i - 1], fresh[2 * i] = entry[1], payload
    plain = plain and not payload:find('\30', 1, true)
  end
  return plain and table.concat(fresh, '\30') or fresh
end
