--- Opens the next generation of a request that is complete, in which failed sub-requests run again. It is open
--- under a producer lease, like a request whose items are still coming: `run-again` moves them in, and `seal` or
--- the end of the lease closes it. What succeeded stays, and so do its results. Nothing is opened when none of the
--- failures that were found is there any more, as somebody else has redriven them since.
--
-- KEYS
--   request  any     state of the request
--   work     stream  its sub-requests; group 'workers'
--   failed   hash    index -> error; 'index:payload' -> payload
--   results  stream  outcomes in the order of settling
-- ARGV
--   generation  int     of the new one, from intent
--   owner       string  who redrives; tells a repetition from somebody else's redrive
--   leaseMs     int     length of the lease of the owner
--   clearing    string  where to go on with what workers left, from the reply before; '0' at first; '': all of it now
--   indexes...  int     of failures that are to run again, the first ones; none: it opens whatever has failed
-- REPLIES
--   {'opened', sealedBy: text, sent: int, createdAt: int}  the new generation is open and ours · sealedBy: the producer
--      that sealed the first one, or '' · sent: how many items that one appended · createdAt: of the first one
--   {'none'}  none of `indexes` is failed any more; this generation is given up
--   {'clearing', from: text}  thousands of workers had it, and what they left is removed a page a call: call again with
--      `from`
--   {'exists', status: text, generation: int}  it is not complete, or somebody else redrives it
--   {'void', above: int}             this generation was given up; start again with an intent above that one
--   {'gone'}                    no such request
-- REPEAT  'opened' (once it is not open any more: 'exists'), nothing changes
-- FLAGS

--- @include now, digits, compact, some-at-a-time

local request, work, failed, results = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local generation, owner, leaseMs, clearing = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]

-- cure: a redriven request has a stream of results
makeUsual(request, work, results)
local current, status, redriving, refused, sealer, priority, createdAt = unpack(redis.call('HMGET', request,
  'generation', 'status', 'redriving', 'voided', 'sealedBy', 'priority', 'createdAt'))
if not current or status == 'void' or status == 'dropped' then
  return { 'gone' }
end
local known, asked, voided, sealedBy = tonumber(current), tonumber(generation), tonumber(refused) or 0, sealer or ''
local complete = status == 'complete'

-- Whether none of the failures that were found is there any more: another redrive has moved them.
local function isNoneLeft()
  local indexes = { unpack(ARGV, 5) }
  if #indexes == 0 then
    return false
  end
  for _, found in ipairs(redis.call('HMGET', failed, unpack(indexes))) do
    if found then
      return false
    end
  end
  return true
end

-- cure: a redrive of nothing opens nothing
if complete and asked > known and isNoneLeft() then
  -- As below: others may have this generation from the same intent.
  -- cure: a redrive of nothing is given up for good
  redis.call('HSET', request, 'voided', math.max(asked, voided))
  return { 'none' }
end
if asked < known or (
  -- cure: a refused redrive is refused for good, 2
  complete and asked > known and asked <= voided) then
  -- A generation that has not ended is met under its own number.
  return { 'void', complete and math.max(known, voided) or known - 1 }
end
local sent = tonumber(redis.call('HGET', request, 'sent:' .. sealedBy)) or 0
if asked == known then
  -- cure: a redrive belongs to its owner
  if status == 'open' and redriving == owner then
    return { 'opened', sealedBy, sent, tonumber(createdAt) or 0 }
  end
  return { 'exists', status, known }
end
-- cure: only a complete request is redriven
if not complete then
  -- The refused caller takes this generation off the queue side, so nobody may open it later.
  -- cure: a refused redrive is refused for good
  redis.call('HSET', request, 'voided', math.max(asked, voided))
  return { 'exists', status, known }
end

-- Whether a field belongs to a worker of the generation before: its permits, lease and numbers.
local ofWorkers = { permits = 1, lease = 1, term = 1, since = 1, op = 1, crashed = 1 }
local function isOfWorker(field)
  return ofWorkers[field:match('^(%a+):') or '']
end

-- Removes a page of what thousands of workers left. It has been of no use since the request is complete, so it may go
-- before the next generation begins. Returns where to continue; '': that was all.
local function clearPage()
  local found, left = redis.call('HSCAN', request, clearing, 'MATCH', '*:*', 'COUNT', 1000), {}
  for i = 1, #found[2], 2 do
    if isOfWorker(found[2][i]) then
      left[#left + 1] = found[2][i]
    end
  end
  someAtATime('HDEL', request, left)
  return found[1] == '0' and '' or found[1]
end

-- The generations that have ended, one a line, with the one that this redrive follows: the latest ten.
local function endedGenerations()
  local v = redis.call('HMGET', request, 'past', 'openedAt', 'completedAt', 'outcome', 'succeeded', 'failed', 'cancelled',
    'moved', 'endReason')
  local lines = {}
  for line in (v[1] or ''):gmatch('[^\n]+') do
    lines[#lines + 1] = line
  end
  lines[#lines + 1] = table.concat({ current, v[2] or createdAt or 0, v[3] or 0, v[4] or '-', v[5] or 0, v[6] or 0,
    v[7] or 0, v[8] or 0, v[9] or '-' }, ' ')
  return table.concat(lines, '\n', math.max(1, #lines - 9))
end

-- Removes what ended with the generation before: what its workers left, how it ended, and what operators asked of it.
local function forgetGeneration()
  local over = {
    'outcome', 'completedAt', 'endReason', 'parked', 'pinned', 'paused', 'heldUntil', 'deadline',
    'producerLost', 'moved', 'movedTo', 'contested',
      -- cure: an unlink belongs to its generation, 2
      'spentAt', 'looked',
  }
  for _, field in ipairs(redis.call('HKEYS', request)) do
    -- cure: a redrive clears pages, 2
    if isOfWorker(field) then
      -- cure: permits end with their generation
      over[#over + 1] = field
    end
  end
  someAtATime('HDEL', request, over)
end

-- Opens the next generation, with an empty stream. It has an owner of its own, so that the submitter of the first one
-- does not take it for its own. It was not delayed, so it takes its turn among those that were not.
local function open(at)
  local lease = redis.call('HMGET', request, 'onProducerLost', 'leaseMs')
  -- cure: a redriven request knows its first generation
  redis.call('HSETNX', request, 'first', current)
  redis.call('HSETNX', request, 'given:onProducerLost', lease[1] or '')
  redis.call('HSETNX', request, 'given:leaseMs', lease[2] or '')
  redis.call('DEL', work)
  redis.call('XGROUP', 'CREATE', work, 'workers', 0, 'MKSTREAM')
  redis.call('HSET', request, 'generation', generation, 'owner', owner, 'status', 'open', 'granted', 0,
    'out', 0, 'outBefore', 0, 'epoch', 1, 'leaseMs', leaseMs, 'producerUntil', at + leaseMs,
    'openedAt', at,
      -- cure: a lost redrive is sealed
      'onProducerLost', 'seal', 'redriving', owner, 'priority', priority:match('^%d+'))
  -- cure: a redriven request is kept
  redis.call('PERSIST', request)
  -- cure: a redriven request is kept, 2
  redis.call('PERSIST', failed)
  -- cure: a redriven request is kept, 3
  redis.call('PERSIST', results)
end

-- cure: a redrive clears pages
if clearing ~= '' and redis.call('HLEN', request) > 2000 then
  return { 'clearing', clearPage() }
end
redis.call('HSET', request, 'past', endedGenerations())
forgetGeneration()
open(now())
return { 'opened', sealedBy, sent, tonumber(createdAt) or 0 }
