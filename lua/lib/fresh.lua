-- Reads up to `count` sub-requests that nobody has read. As one text: entry, RS, payload, RS, …, because each
-- string of a reply costs the client more than it costs to join them here. A payload is opaque: where one
-- holds an RS itself, they come as they are: { entry, payload, … }. Comes after writes, so it never throws.
local function readFresh(work, worker, count)
  local streams = redis.pcall('XREADGROUP', 'GROUP', 'workers', worker, 'COUNT', count, 'STREAMS', work, '>')
  local fresh, plain = {}, true
  for i, entry in ipairs(streams and not streams.err and streams[1][2] or {}) do
    local payload = entry[2][2]
    fresh[2 * i - 1], fresh[2 * i] = entry[1], payload
    plain = plain and not payload:find('\30', 1, true)
  end
  return plain and table.concat(fresh, '\30') or fresh
end
