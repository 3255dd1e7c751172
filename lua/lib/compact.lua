--- @needs now, digits
-- A small request is compact at first: its state and its sub-requests are one string, an array in MessagePack
-- (docs/decisions/0068-compact-requests.md). It stays so until something happens to it other than that one worker reads
-- all of its sub-requests and settles all of them as succeeded. Every other call expands it first, into a hash and
-- packed sub-requests (lib/packed). Both forms say the same. The elements of the array, as the fields of the state have
-- them; those with a * are numbers:
--
--    1 generation    6 worker *)     11 priority   16 results        21 owner         25 sub-requests, as in lib/packed;
--    2 total*        7 its permits*  12 limit      17 retentionMs*   22 createdBy, ''    '' once it is complete
--    3 out*          8 its op*       13 task       18 notify, ''     23 largest*      26 completedAt*; 0: it is sealed
--    4 outBefore*    9 leaseEnds*    14 attempts   19 createdAt*     24 others: the   27 kept*: bytes of results
--    5 epoch*       10 leaseMs*      15 policy     20 createUntil*      other fields, in MessagePack
--
-- *) the worker that has read it, or ''. Its first enter is its only one, so `op` is the number of its grant, too.

local function isCompact(request)
  return redis.call('TYPE', request).ok == 'string'
end

-- Reads the array. Fails where the string is of somebody else, as each command on a state would.
local function readCompact(request)
  local c = cmsgpack.unpack(redis.call('GET', request))
  if type(c) ~= 'table' or #c ~= 27 then
    redis.call('HLEN', request)
  end
  return c
end

-- The fields of the state of a compact request: field, value, … First those that scripts search most often.
local function fieldsOfCompact(c)
  local generation, total, out, outBefore, epoch, worker, permits, op, leaseEnds, leaseMs, priority, limit, task, attempts,
    policy, results, retentionMs, notify, createdAt, createUntil, owner, createdBy, largest, others, _, completedAt,
    kept = unpack(c)
  local complete = completedAt > 0
  local fields = {
    'generation', generation, 'total', digits(total), 'largest', digits(largest), 'createUntil', digits(createUntil),
    'status', complete and 'complete' or 'sealed', 'succeeded', complete and digits(total) or '0', 'failed', '0',
    'cancelled', '0', 'granted', digits(permits), 'out', digits(out), 'outBefore', digits(outBefore), 'epoch',
    digits(epoch), 'createdAt', digits(createdAt), 'priority', priority, 'limit', limit, 'task', task, 'attempts',
    attempts, 'policy', policy, 'results', results, 'retentionMs', digits(retentionMs),
    'owner', owner, 'sealedBy', owner, 'sent:' .. owner, digits(total + 1),
  }
  local function add(field, value)
    fields[#fields + 1], fields[#fields + 2] = field, value
  end
  local rest = cmsgpack.unpack(others)
  for i = 1, #rest, 2 do
    add(rest[i], rest[i + 1])
    if rest[i] == 'leaseMs' then
      add('producerUntil', digits(createdAt + rest[i + 1]))
    end
  end
  if notify ~= '' then
    add('notify', notify)
  end
  if createdBy ~= '' then
    add('createdBy', createdBy)
  end
  if worker ~= '' then
    add('permits:' .. worker, digits(permits))
    add('lease:' .. worker, digits(leaseEnds))
    add('term:' .. worker, digits(leaseMs))
    add('op:' .. worker, digits(op))
    add('since:' .. worker, digits(op))
  end
  if complete then
    add('outcome', 'succeeded')
    add('completedAt', digits(completedAt))
    add('kept', digits(kept))
  end
  return fields
end

-- Some of these fields, as HMGET answers them: false for one that is missing.
local function someOfCompact(c, names)
  local all, some, values = fieldsOfCompact(c), {}, {}
  for i = 1, #all, 2 do
    some[all[i]] = all[i + 1]
  end
  for i, name in ipairs(names) do
    values[i] = some[name] or false
  end
  return values
end

-- Makes the usual form of a compact request. One that is complete expires when it would have. The state is written after
-- its delete, which no script may do in a hash slot that is on its way to another server: in a cluster nothing is compact.
local function expand(request, work)
  local c = readCompact(request)
  local retentionMs, items, completedAt, fields = c[17], c[25], c[26], fieldsOfCompact(c)
  if completedAt == 0 then
    -- First, so that a user without the right to it loses nothing.
    redis.call('SET', work, items)
  end
  redis.call('DEL', request)
  redis.call('HSET', request, unpack(fields))
  if completedAt == 0 then
    return
  end
  -- Where the clock went back since, it is kept for no longer than it was meant.
  local leftMs = math.min(
    -- cure: a compact request is kept for no longer than it was meant
    retentionMs,
    completedAt + retentionMs - now())
  -- cure: a compact request that is complete expires in any form
  redis.call('PEXPIRE', request, digits(math.max(1, leftMs)))
end

-- Reads fields of a request's state, which has the usual form from here on.
local function stateFields(request, work, ...)
  local values = redis.pcall('HMGET', request, ...)
  if values.err then
    if values.err:find('^WRONGTYPE') then
      expand(request, work)
    end
    values = redis.call('HMGET', request, ...)
  end
  return values
end
