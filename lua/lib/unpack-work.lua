-- Makes the stream of packed sub-requests, as `append` leaves it.
local function unpackWork(work, generation)
  local text, from, index = redis.call('GET', work), 1, 0
  redis.call('DEL', work)
  redis.call('XGROUP', 'CREATE', work, 'workers', '0', 'MKSTREAM')
  while from <= #text do
    local colon = text:find(':', from, true)
    local to = colon + tonumber(text:sub(from, colon - 1))
    redis.call('XADD', work, generation .. '-' .. index, 'p', text:sub(colon + 1, to))
    from, index = to + 1, index + 1
  end
end
