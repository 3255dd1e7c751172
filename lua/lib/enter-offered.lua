--- @needs digits, compact-enter, offers
-- Enters a compact request (lib/compact) that was just written for a worker that has offered it, so that it needs no token.

-- An offer in its parts, with the worker that it is of; nil: it is a note, or of a form that this version does not know.
local function parseOffer(worker, text)
  local op, leaseMs, want, most, ahead, quick, channel, tasks =
    text:match('^%d+ (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%S+) (.*)$')
  return op and {
    worker = worker, op = tonumber(op), leaseMs = tonumber(leaseMs), want = countOf(want), most = tonumber(most),
    ahead = tonumber(ahead), quick = tonumber(quick), channel = channel, tasks = tasks,
  }
end

-- Sends a message on a shard channel. Answers how many have received it; nil: the user has no right to send it.
local function publishHere(channel, message)
  -- A worker may still listen to a former master. A replica would send it what counts here as not received.
  -- cure: what is entered by an offer is told by this server only
  redis.set_repl(redis.REPL_NONE)
  local told = redis.pcall('SPUBLISH', channel, message)
  redis.set_repl(redis.REPL_ALL)
  return type(told) == 'number' and told or nil
end

-- Enters the request for the worker of an offer, and sends it what `enter` would have answered. Returns when the lease ends;
-- false: the offer does not fit, or nobody has received the message; nil: the user has no right to send it.
local function enterFor(offers, offer, request, name, generation, at)
  local worker, leaseMs, quick = offer.worker, offer.leaseMs, offer.quick
  local before, ends = redis.call('GET', request), at + leaseMs
  local grant, c = enterCompact(request, generation, worker, offer.op, offer.want, ends, leaseMs, offer.tasks, offer.most,
    offer.ahead, quick, 1)
  if not grant then
    return false
  end
  local head = { name, digits(offer.op), digits(ends), digits(grant), digits(c[5]), c[14], digits(quick) }
  local told = publishHere(offer.channel, enteredText(table.concat(head, ' '), c))
  if told and told > 0 then
    redis.call('HSET', offers, worker, table.concat({ 'taken', digits(ends + KEPT_MS), digits(offer.op), name }, ' '))
    -- cure: a note is kept until the lease ends
    keepOffers(offers, leaseMs + KEPT_MS)
    return ends
  end
  -- cure: a request is not left to a worker that is gone
  redis.call('SET', request, before)
  if told == 0 then
    redis.call('HDEL', offers, worker)
  end
  return told and false
end

-- Returns when the lease of the worker ends that has it now; nil: none has. `name`: 'id~generation'.
local function enterOffered(offers, request, name, generation, at)
  local drawn = drawOffers(offers, at)
  for i = 1, #drawn, 2 do
    local offer = parseOffer(drawn[i], drawn[i + 1])
    local ends = offer and enterFor(offers, offer, request, name, generation, at)
    -- Without the right to send to one worker, each of them would be tried, and noted in ACL LOG.
    if ends or offer and ends == nil then
      return ends
    end
  end
  return nil
end
