--- @needs now, digits
-- A small request is compact at first: its state and its sub-requests are one string, an array in MessagePack
-- (docs/decisions/0068-compact-requests.md). It stays so while only these change it: an enter that reads the whole request,
-- a tend before that, and a settle of the whole request as succeeded. Every other call that may change it expands it first:
-- it makes the usual form, a hash and a stream. Both forms say the same. The elements are fields of
-- the state, or as said here; those with a * are numbers, the others texts:
--
--    1 generation    6 worker that    11 priority   16 results        21 owner         26 completedAt*; 0: it is sealed
--    2 total*          entered, or '' 12 limit      17 retentionMs*   22 createdBy, '' 27 kept*: bytes of results
--    3 out*          7 its permits*   13 task       18 notify, ''     23 largest*
--    4 outBefore*    8 its op*        14 attempts   19 createdAt*     24 all other fields, leaseMs among them: field,
--    5 epoch*        9 lease:<w>*     15 policy     20 createUntil*      value, … in MessagePack
--                   10 term:<w>*                                      25 payloads with RS (U+001E) between; once complete, the
--                                                                      cost of all attempts (lib/cost)
--
-- The first enter of that worker is its only one, so its op is the number of its grant, too.

local function isCompact(request)
  return redis.call('TYPE', request).ok == 'string'
end

-- Reads the array. If the string is not ours, it fails as a command on a hash would.
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
    policy, results, retentionMs, notify, createdAt, createUntil, owner, createdBy, largest, others, payloads, completedAt,
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
    add('cost', payloads)
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

-- All fields that have no place of their own.
local function otherFieldsOf(c)
  local rest, value = cmsgpack.unpack(c[24]), {}
  for i = 1, #rest, 2 do
    value[rest[i]] = rest[i + 1]
  end
  return value
end

-- The payloads, in the order of their indexes.
local function payloadsOf(c)
  local payloads = {}
  for payload in (c[25] .. '\30'):gmatch('(.-)\30') do
    payloads[#payloads + 1] = payload
  end
  return payloads
end

-- Makes the stream of its sub-requests, as `append` leaves it. If a worker has entered it, they are its own there, from the
-- time when its lease began.
local function writeStream(c, work)
  local ids = {}
  redis.call('DEL', work)
  redis.call('XGROUP', 'CREATE', work, 'workers', '0', 'MKSTREAM')
  for i, payload in ipairs(payloadsOf(c)) do
    ids[i] = redis.call('XADD', work, c[1] .. '-' .. i - 1, 'p', payload)
  end
  local worker, leaseEnds, leaseMs = c[6], c[9], c[10]
  if
    -- cure: what is compact may be with a worker, in a stream
    worker ~= '' then
    redis.call('XREADGROUP', 'GROUP', 'workers', worker, 'COUNT', #ids, 'STREAMS', work, '>')
    ids[#ids + 1], ids[#ids + 2], ids[#ids + 3] = 'IDLE', digits(math.max(0, now() + leaseMs - leaseEnds)), 'JUSTID'
    redis.call('XCLAIM', work, 'workers', worker, 0, unpack(ids))
  end
end

-- Makes the usual form of a compact request. A complete one keeps its time of expiry. The state is written after its delete,
-- which a script may not do in a hash slot that migrates: in a cluster nothing is compact.
local function expand(request, work)
  local c = readCompact(request)
  local retentionMs, completedAt, fields = c[17], c[26], fieldsOfCompact(c)
  if completedAt == 0 then
    -- Before the delete: where the user lacks a right, the script stops here, and nothing is lost.
    writeStream(c, work)
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
