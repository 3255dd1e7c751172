--- @needs now, digits
-- A small request is compact: its state and its sub-requests are one string, an array in MessagePack
-- (docs/decisions/0084-small-requests.md). It stays so while only these change it: an enter that reads the whole request, a
-- renewal that reports nothing, a tend while nobody has it, and a settle after which every sub-request has ended. Every
-- other call that may change it expands it first: it makes a hash and a stream, which say the same. Once complete, only
-- `redrive` and what deletes it do so. The elements are fields of the state, or as said here; those with a * are numbers,
-- the others texts:
--
--    1 generation    6 worker that    11 priority   16 results        21 owner         26 completedAt*; 0: it is sealed
--    2 total*          entered, or '' 12 limit      17 retentionMs*   22 createdBy, '' 27 kept*: bytes of results
--    3 out*          7 its permits*   13 task       18 notify, ''     23 largest*      28 failed*
--    4 outBefore*    8 its op*        14 attempts   19 createdAt*     24 all other     29 outcome, ''
--    5 epoch*        9 lease:<w>*     15 policy     20 createUntil*      fields        30 its only record: 'ok', results or
--                   10 term:<w>*                                      25 payloads         !index, attempts
--                                                                                     31 when it was entered*; before:
--                                                                                        heldUntil; 0: it is not held
--
-- 24: field, value, … in MessagePack, leaseMs among them · 25: with RS (U+001E) between; once complete, the cost of all
-- attempts (lib/cost). The first enter of that worker is its only one, so its op is the number of its grant, too.
local GENERATION, TOTAL, OUT, OUT_BEFORE, EPOCH, WORKER, PERMITS, OP, LEASE_ENDS, LEASE_MS = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
local PRIORITY, LIMIT, TASK, ATTEMPTS, POLICY, RESULTS, RETENTION_MS, NOTIFY = 11, 12, 13, 14, 15, 16, 17, 18
local CREATED_AT, OTHERS, PAYLOADS, COMPLETED_AT, KEPT, FAILED, OUTCOME, RECORD, SINCE = 19, 24, 25, 26, 27, 28, 29, 30,
  31

-- Up to how many bytes of payloads a compact request has, and of results once it is complete.
local COMPACT_BYTES = 16384

local function isCompact(request)
  return redis.call('TYPE', request).ok == 'string'
end

-- Reads the array. If the string is not ours, it fails as a command on a hash would.
local function readCompact(request)
  local c = cmsgpack.unpack(redis.call('GET', request))
  if type(c) ~= 'table' or #c ~= 31 then
    redis.call('HLEN', request)
  end
  return c
end

-- The fields of the state of a compact request: field, value, … First those that scripts search most often. An array
-- without sub-requests, which lib/first-state makes and nobody stores, is that of an open request.
local function fieldsOfCompact(c)
  local generation, total, out, outBefore, epoch, worker, permits, op, leaseEnds, leaseMs, priority, limit, task, attempts,
    policy, results, retentionMs, notify, createdAt, createUntil, owner, createdBy, largest, others, payloads, completedAt,
    kept, failed, outcome = unpack(c)
  local complete = completedAt > 0
  local fields = {
    'generation', generation, 'total', digits(total), 'largest', digits(largest), 'createUntil', digits(createUntil),
    'status', complete and 'complete' or total > 0 and 'sealed' or 'open', 'succeeded',
    complete and digits(total - failed) or '0', 'failed', digits(failed), 'cancelled', '0', 'granted', digits(permits),
    'out', digits(out), 'outBefore', digits(outBefore), 'epoch', digits(epoch), 'createdAt', digits(createdAt),
    'priority', priority, 'limit', limit, 'task', task, 'attempts',
    attempts, 'policy', policy, 'results', results, 'retentionMs', digits(retentionMs),
    'owner', owner,
  }
  local function add(field, value)
    fields[#fields + 1], fields[#fields + 2] = field, value
  end
  if total > 0 then
    add('sealedBy', owner)
    add('sent:' .. owner, digits(total))
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
    add('outcome', outcome)
    add('completedAt', digits(completedAt))
    add('kept', digits(kept))
    add('cost', payloads)
  end
  return fields
end

-- Some of these fields, as HMGET answers them: false for one that is missing.
local function someOfCompact(c, names)
  local complete, values, all = c[COMPLETED_AT] > 0, {}, nil
  local known = {
    generation = c[GENERATION], total = digits(c[TOTAL]), status = complete and 'complete' or 'sealed',
    outcome = complete and c[OUTCOME],
  }
  for i, name in ipairs(names) do
    if known[name] == nil and not all then
      -- All others take longer, and are seldom asked for.
      all = fieldsOfCompact(c)
      for j = 1, #all, 2 do
        known[all[j]] = all[j + 1]
      end
    end
    values[i] = known[name] or false
  end
  return values
end

-- Reads fields of a request's state, whichever form it has, as HMGET answers them.
local function fieldsOf(request, names)
  if isCompact(request) then
    return someOfCompact(readCompact(request), names)
  end
  return redis.call('HMGET', request, unpack(names))
end

-- All fields that have no place of their own.
local function otherFieldsOf(c)
  local rest, value = cmsgpack.unpack(c[OTHERS]), {}
  for i = 1, #rest, 2 do
    value[rest[i]] = rest[i + 1]
  end
  return value
end

-- The payloads, in the order of their indexes.
local function payloadsOf(c)
  local payloads = {}
  for payload in (c[PAYLOADS] .. '\30'):gmatch('(.-)\30') do
    payloads[#payloads + 1] = payload
  end
  return payloads
end

-- Makes the stream of the sub-requests of a generation, as `append` leaves it: `count` of `items`, from index `first` on.
-- Returns the ids of the entries.
local function makeStream(work, life, items, first, count)
  local ids, prefix = {}, life .. '-'
  redis.call('DEL', work)
  redis.call('XGROUP', 'CREATE', work, 'workers', '0', 'MKSTREAM')
  for i = 0, count - 1 do
    ids[i + 1] = redis.call('XADD', work, prefix .. i, 'p', items[first + i])
  end
  return ids
end

-- Makes the stream of a compact request. If a worker has entered it, the sub-requests are its own there, from that time on.
local function writeStream(c, work)
  local payloads = payloadsOf(c)
  local ids, worker = makeStream(work, c[GENERATION], payloads, 1, #payloads), c[WORKER]
  if
    -- cure: what is compact may be with a worker, in a stream
    worker ~= '' then
    redis.call('XREADGROUP', 'GROUP', 'workers', worker, 'COUNT', #ids, 'STREAMS', work, '>')
    ids[#ids + 1], ids[#ids + 2], ids[#ids + 3] = 'IDLE', digits(math.max(0, now() - c[SINCE])), 'JUSTID'
    redis.call('XCLAIM', work, 'workers', worker, 0, unpack(ids))
  end
end

-- The position of the only record of a complete request.
local function positionOf(c)
  return c[GENERATION] .. '-' .. digits(c[TOTAL])
end

-- Makes a hash and a stream of a compact request; of a complete one, whose time of expiry both keep, the stream is that of
-- its results. The state is written after its delete, which a script may not do in a hash slot that migrates: in a cluster
-- nothing is compact.
local function expand(request, work, results)
  local c = readCompact(request)
  local retentionMs, completedAt, record, fields = c[RETENTION_MS], c[COMPLETED_AT], c[RECORD], fieldsOfCompact(c)
  if completedAt == 0 then
    -- Before the delete: where the user lacks a right, the script stops here, and nothing is lost.
    writeStream(c, work)
  elseif #record > 0 then
    redis.call('XADD', results, positionOf(c), unpack(record))
  end
  redis.call('DEL', request)
  redis.call('HSET', request, unpack(fields))
  if completedAt == 0 then
    return
  end
  -- Where the clock went back since, it is kept for no longer than it was meant.
  local leftMs = digits(math.max(1, math.min(
    -- cure: a compact request is kept for no longer than it was meant
    retentionMs,
    completedAt + retentionMs - now())))
  -- cure: a compact request that is complete expires in any form
  redis.call('PEXPIRE', request, leftMs)
  if #record > 0 then
    -- cure: a compact request that is complete expires in any form, 2
    redis.call('PEXPIRE', results, leftMs)
  end
end

-- Makes a hash and a stream of a request that is compact, complete or not.
local function makeUsual(request, work, results)
  if isCompact(request) then
    expand(request, work, results)
  end
end

-- Reads fields of a request's state. One that is not complete is a hash and a stream from here on.
local function stateFields(request, work, ...)
  local values = redis.pcall('HMGET', request, ...)
  if values.err then
    if values.err:find('^WRONGTYPE') then
      local c = readCompact(request)
      if c[COMPLETED_AT] > 0 then
        return someOfCompact(c, { ... })
      end
      expand(request, work)
    end
    values = redis.call('HMGET', request, ...)
  end
  return values
end

-- The outcome of a complete request, and when its keys are to be unlinked, if they are.
local function endOf(request, work)
  return unpack(stateFields(request, work, 'outcome', 'spentAt'))
end
