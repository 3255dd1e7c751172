--- @needs digits, compact-enter, offers
-- Enters a compact request (lib/compact) that was just written for a worker that offered it, instead of a token.

-- How many workers are asked.
local ASKED = 4

-- Sends a message on a shard channel. Answers how many have received it; nil: the user has no right to send it.
local function publishHere(channel, message)
  -- A worker may still listen to a former master. A replica would send it what counts here as not received.
  -- cure: what is entered by an offer is told by this server only
  redis.set_repl(redis.REPL_NONE)
  local told = redis.pcall('SPUBLISH', channel, message)
  redis.set_repl(redis.REPL_ALL)
  return type(told) == 'number' and told or nil
end

-- Enters the request of this state for `worker`, and tells it. Returns whether it was there to be told.
local function enterFor(offers, worker, op, leaseMs, want, most, ahead, quick, tasks, channel, request, name, generation, at)
  local before, ends = redis.call('GET', request), at + leaseMs
  local grant, c = enterCompact(request, generation, worker, tonumber(op), want, ends, leaseMs, tasks, most, ahead, quick, 1)
  if not grant then
    return false
  end
  local head = { name, op, digits(ends), digits(grant), digits(c[5]), c[14], quick }
  local told = publishHere(channel, enteredText(table.concat(head, ' '), c))
  if told and told > 0 then
    redis.call('HSET', offers, worker, table.concat({ 'taken', digits(at), op, name }, ' '))
    return true
  end
  -- cure: a request is not left to a worker that is gone
  redis.call('SET', request, before)
  if told == 0 then
    redis.call('HDEL', offers, worker)
  end
  return false
end

-- Returns whether a worker has it. A user without the rights for it pushes a token, as always. `name`: 'id~generation'.
local function enterOffered(offers, request, name, generation, at)
  local found = redis.pcall('HRANDFIELD', offers, ASKED, 'WITHVALUES')
  for i = 1, #found, 2 do
    local worker, text = found[i], found[i + 1]
    local ends, op, leaseMs, want, most, ahead, quick, channel, tasks =
      text:match('^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%S+) (.*)$')
    local time = tonumber(ends or text:match('^taken (%d+)'))
    local last = ends and time or time + TAKEN_MS
    if at >= last or --[[cure: an offer is not believed beyond its length]] last > at + (ends and OFFER_MS or TAKEN_MS) then
      redis.call('HDEL', offers, worker)
    elseif ends and enterFor(offers, worker, op, tonumber(leaseMs), countOf(want), tonumber(most), tonumber(ahead),
      tonumber(quick), tasks, channel, request, name, generation, at)
    then
      return true
    end
  end
  return false
end
