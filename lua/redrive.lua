--- Opens the next life of a request that is complete, in which failed sub-requests run again. It is
--- open under a producer lease, like one whose items are still coming: `run-again` moves them in,
--- `seal` ends that, and so does the end of the lease. What succeeded stays, and so do its results.
--
-- KEYS
--   request   hash    state of the request
--   work      stream  its sub-requests; group 'workers'
--   failed    hash    index -> error; 'index:payload' -> payload
--   results   stream  outcomes in the order of settling
-- ARGV
--   generation  int     of the new life, from intent
--   owner       string  who redrives; tells a repetition from somebody else's redrive
--   leaseMs     int     how long the owner is believed without a sign of life
--   clearing    string  where to go on with what workers left, from the reply before; '0' at first; '': all of it now
-- REPLIES
--   {'opened', sealedBy: text, sent: int}  the new life is open and ours · sealedBy: the producer that sealed the
--      first life, or '' · sent: how many items that one appended
--   {'clearing', from: text}          thousands of workers held it, and what they left goes a page a call: call again with
--      `from`
--   {'exists', status: text, generation: int}  it is not complete, or somebody else redrives it
--   {'void', above: int}             this generation was given up; start again with an intent above that one
--   {'gone'}                    no such request
-- REPEAT  'opened' (once it is not open any more: 'exists'), nothing changes
-- FLAGS

--- @include now

local request, work, failed, results = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local generation, owner, leaseMs, clearing = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]

local v = redis.call('HMGET', request, 'generation', 'status', 'redriving', 'voided', 'sealedBy',
  'priority')
local status, sealedBy = v[2], v[5] or ''
if not v[1] or status == 'void' or status == 'dropped' then
  return { 'gone' }
end
local known, asked, voided = tonumber(v[1]), tonumber(generation), tonumber(v[4]) or 0
local complete = status == 'complete'
if asked < known or (complete and asked > known and asked <= voided) then
  -- A life that is not over is met under its own generation.
  return { 'void', complete and math.max(known, voided) or known - 1 }
end
local sent = tonumber(redis.call('HGET', request, 'sent:' .. sealedBy)) or 0
if asked == known then
  if status == 'open' and v[3] == owner then
    return { 'opened', sealedBy, sent }
  end
  return { 'exists', status, known }
end
if not complete then
  -- Whoever is refused takes this generation off the queue side, so nobody may open it later.
  redis.call('HSET', request, 'voided', math.max(asked, voided))
  return { 'exists', status, known }
end

-- Of the life before, what ended with it: permits and numbers of its workers, and how it stood.
local ofWorkers = { permits = 1, lease = 1, term = 1, since = 1, op = 1, crashed = 1 }
if clearing ~= '' and redis.call('HLEN', request) > 2000 then
  -- Of no use to anybody since it is complete, so it may go before the next life begins.
  local found, left = redis.call('HSCAN', request, clearing, 'MATCH', '*:*', 'COUNT', 1000), {}
  for i = 1, #found[2], 2 do
    if ofWorkers[found[2][i]:match('^(%a+):') or ''] then
      left[#left + 1] = found[2][i]
    end
  end
  for i = 1, #left, 1000 do
    redis.call('HDEL', request, unpack(left, i, math.min(i + 999, #left)))
  end
  return { 'clearing', found[1] == '0' and '' or found[1] }
end
local over = {
  'outcome', 'completedAt', 'endReason', 'parked', 'pinned', 'paused', 'heldUntil', 'deadline',
  'producerLost', 'moved', 'movedTo', 'contested', 'spentAt', 'looked',
}
for _, field in ipairs(redis.call('HKEYS', request)) do
  if ofWorkers[field:match('^(%a+):') or ''] then
    over[#over + 1] = field
  end
end
for i = 1, #over, 1000 do
  redis.call('HDEL', request, unpack(over, i, math.min(i + 999, #over)))
end
local at = now()
redis.call('DEL', work)
redis.call('XGROUP', 'CREATE', work, 'workers', 0, 'MKSTREAM')
-- An owner of its own: whoever submitted the first life does not take this one for its own.
redis.call('HSET', request, 'generation', generation, 'owner', owner, 'status', 'open', 'granted', 0,
  'out', 0, 'outBefore', 0, 'epoch', 1, 'leaseMs', leaseMs, 'producerUntil', at + leaseMs,
  'onProducerLost', 'seal', 'redriving', owner,
  -- It was not delayed, so it stands with those that were not.
  'priority', v[6]:match('^%d+'))
redis.call('PERSIST', request)
redis.call('PERSIST', failed)
redis.call('PERSIST', results)
return { 'opened', sealedBy, sent }
