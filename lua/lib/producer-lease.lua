--- @needs terms, ended-early
-- Seals or ends an open request whose producers have been silent for a whole lease. Returns when that lease ends.
local function followProducer(request, state, producerUntil, onProducerLost, leaseMs, grace)
  -- cure: grace for producers after an outage
  producerUntil = leaseEnds(request, 'producerUntil', producerUntil, leaseMs, state.at, grace)
  -- cure: producer lease
  if producerUntil <= state.at then
    redis.call('HSET', request, 'producerLost', 1)
    if onProducerLost == 'seal' then
      state.status = 'sealed'
      redis.call('HSET', request, 'status', 'sealed')
    else
      endEarly(request, state, 'producer-lost')
    end
  end
  return producerUntil
end
