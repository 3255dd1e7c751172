--- @needs digits
-- Offers of idle workers: an enter that is made in advance, for the next small request that is submitted. Hash, of each
-- worker one text:
--
--   'until op leaseMs want most ahead quick channel tasks'   it stands until then, server time; the worker listens on this
--                                                           shard channel; the rest is as in `enter`
--   'taken at op id~generation'                              this request was entered by it

-- An offer stands for about as long as a pop waits. What was taken is remembered until its worker knows.
local OFFER_MS, TAKEN_MS = 6000, 60000

-- What was entered by the last offer, as 'op id~generation'; nil: nothing was.
local function takenBy(offers, worker)
  return (redis.call('HGET', offers, worker) or ''):match('^taken %d+ (.*)$')
end

-- `terms`: the offer from `op` on.
local function makeOffer(offers, worker, terms, at)
  redis.call('HSET', offers, worker, digits(at + OFFER_MS) .. ' ' .. terms)
  redis.call('PEXPIRE', offers, TAKEN_MS)
end
