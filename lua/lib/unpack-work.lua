--- @needs now, packed, digits
-- The worker that has permits, of which there is one where packed sub-requests were read; nil: there is none.
local function holderOf(request)
  local fields = redis.call('HGETALL', request)
  for i = 1, #fields, 2 do
    local worker = fields[i]:match('^permits:(.*)')
    if worker then
      return worker
    end
  end
end

-- Makes the stream of packed sub-requests, as `append` leaves it. If `holder` has read them, they are its own there, from
-- the time when its lease began.
local function unpackWork(request, generation, work, holder)
  local payloads, ids = packedIn(work), {}
  redis.call('DEL', work)
  redis.call('XGROUP', 'CREATE', work, 'workers', '0', 'MKSTREAM')
  for i, payload in ipairs(payloads) do
    ids[i] = redis.call('XADD', work, generation .. '-' .. i - 1, 'p', payload)
  end
  if not holder then
    return
  end
  redis.call('XREADGROUP', 'GROUP', 'workers', holder, 'COUNT', #ids, 'STREAMS', work, '>')
  local lease = redis.call('HMGET', request, 'lease:' .. holder, 'term:' .. holder)
  local forMs = math.max(0, now() + (tonumber(lease[2]) or 0) - (tonumber(lease[1]) or 0))
  ids[#ids + 1], ids[#ids + 2], ids[#ids + 3] = 'IDLE', digits(forMs), 'JUSTID'
  redis.call('XCLAIM', work, 'workers', holder, 0, unpack(ids))
end
