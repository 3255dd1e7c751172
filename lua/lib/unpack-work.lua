--- @needs now, packed, digits
-- Makes the stream of packed sub-requests, as `append` leaves it. `areRead`: the one worker with permits has read them,
-- so they are its own there, from the time when its lease began.
local function unpackWork(request, generation, work, areRead)
  local payloads, ids = packedIn(work), {}
  redis.call('DEL', work)
  redis.call('XGROUP', 'CREATE', work, 'workers', '0', 'MKSTREAM')
  for i, payload in ipairs(payloads) do
    ids[i] = redis.call('XADD', work, generation .. '-' .. i - 1, 'p', payload)
  end
  if not areRead then
    return
  end
  local fields, state, owner = redis.call('HGETALL', request), {}, nil
  for i = 1, #fields, 2 do
    state[fields[i]] = fields[i + 1]
    owner = owner or fields[i]:match('^permits:(.*)')
  end
  redis.call('XREADGROUP', 'GROUP', 'workers', owner, 'COUNT', #ids, 'STREAMS', work, '>')
  local forMs = math.max(0, now() + state['term:' .. owner] - state['lease:' .. owner])
  for _, id in ipairs(ids) do
    redis.call('XCLAIM', work, 'workers', owner, 0, id, 'IDLE', digits(forMs), 'JUSTID')
  end
end
