--- Offers that a worker enters the next small request. `submit` then enters it for the worker, and sends what `enter`
--- would have replied to a channel of the worker, so that no token has to be pushed and popped. A worker offers while its
--- pop waits: then no list has a token.
--
-- KEYS
--   offers  hash  boot id -> the offer of this worker, or a note of what was entered by it (lib/offers)
-- ARGV
--   worker  string  boot id of the worker process
--   known   string  'op id~generation' of the request that was last entered by an offer of this worker, as it knows; ''
--   terms   string  'op leaseMs want most ahead quick channel tasks' (lib/offers); '': it offers nothing any more
-- REPLIES
--   {'offered', now: int, taken: text}  taken: 'op id~generation' of a request that was entered by its last offer and that
--      it does not know, as the message got lost or is under way: nothing was offered; else ''
-- REPEAT  the same, or what was entered since
-- FLAGS allow-oom

--- @include now, digits, offers

local offers = KEYS[1]
local worker, known, terms = ARGV[1], ARGV[2], ARGV[3]

local at = now()
local taken = takenBy(offers, worker)
-- cure: a worker learns of a request whose message got lost
if taken and taken ~= known then
  return { 'offered', at, taken }
end
if terms == '' then
  redis.call('HDEL', offers, worker)
else
  -- Fleets that were killed leave offers. Others delete them here, also where nothing is submitted.
  -- cure: offers of workers that are gone are deleted
  drawOffers(offers, at)
  makeOffer(offers, worker, terms, at)
end
return { 'offered', at, '' }
