--- @needs digits
-- Offers of idle workers: the arguments with which `submit` may enter the next small request for the worker. Hash, of each
-- worker one text:
--
--   'until op leaseMs want most ahead quick channel tasks'   an offer: it stands until then, server time; the worker listens
--                                                           on this shard channel; the rest is as in `enter`
--   'taken until op id~generation'                           a note: this request was entered by the last offer; it is kept
--                                                           until then

-- An offer stands for about as long as a pop waits. The hash is kept for a while after the last offer, and a note after the
-- end of the lease: while Redis was away, leases have their time again. No lease is longer than an hour, and a clock that is
-- set back by more than a day was wrong.
local OFFER_MS, KEPT_MS, LONGEST_NOTE_MS = 6000, 60000, 90000000

-- How many offers and notes are read at a time.
local DRAWN = 4

-- What was entered by the last offer, as 'op id~generation'; nil: nothing was.
local function takenBy(offers, worker)
  return (redis.call('HGET', offers, worker) or ''):match('^taken %d+ (.*)$')
end

-- Keeps the hash for at least so long.
local function keepOffers(offers, ms)
  if redis.call('PEXPIRE', offers, ms, 'GT') == 0 then
    redis.call('PEXPIRE', offers, ms, 'NX')
  end
end

-- `terms`: the offer from `op` on.
local function makeOffer(offers, worker, terms, at)
  redis.call('HSET', offers, worker, digits(at + OFFER_MS) .. ' ' .. terms)
  keepOffers(offers, KEPT_MS)
end

-- Whether an offer or a note counts no longer. When the clock has gone back, an offer would stand for too long. A note stays,
-- as its worker has yet to learn of it.
local function isPast(text, at)
  local noted = text:match('^taken (%d+)')
  local ends = tonumber(noted or text:match('^%d+'))
  return not ends or at >= ends or
    --[[cure: an offer is not believed beyond its length]] ends > at +
      --[[cure: a note does not end as an offer does]] (noted and LONGEST_NOTE_MS or OFFER_MS)
end

-- Some offers and notes, drawn at random, as worker, text, … Those that count no longer are deleted. A user without the right
-- to draw gets none.
local function drawOffers(offers, at)
  local drawn, found = redis.pcall('HRANDFIELD', offers, DRAWN, 'WITHVALUES'), {}
  for i = 1, #drawn, 2 do
    if isPast(drawn[i + 1], at) then
      redis.call('HDEL', offers, drawn[i])
    else
      found[#found + 1], found[#found + 2] = drawn[i], drawn[i + 1]
    end
  end
  return found
end
