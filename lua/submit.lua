--- Submits requests whose items are all known: opens their ids on the queue side, writes each as `intent`, `create`,
--- `append` and `seal` leave it (a small one compact, see lib/compact), and pushes its first
--- token. One call, for a server that has both sides. The requests of one call have the same options. An id of which
--- anything is there is left alone: those calls find out what it is. Nothing is half done: all of a request is written,
--- or none, and a server that loses its last writes loses all of it.
--
-- KEYS
--   open         hash  id -> generation of every open request
--   agenda       zset  id -> time of its next attention
--   counters     hash  counts of this queue, as in `intent`
--   pushed       hash  priority -> tokens ever pushed to its list
--   list         list  tokens of the priority; with `expedite` among the options, its lane
--   requests...  any   of each request: its state (hash or string), its sub-requests (string or stream), and its
--                      results
-- ARGV
--   graceMs         int     until the first tend
--   windowMs        int     an id that was opened longer ago is left alone; as in `create`
--   leaseMs         int     length of the producer lease
--   priority        int     of the list
--   channel         string  shard channel of the queue's workers
--   options         string  JSON array of field, value, …, as the fields of `create`
--   submissions...  value   of each request: id, name of the submission, name of the call or '', number of items, items
-- REPLIES
--   {'submitted', generations: ints}  of each request: it exists under this generation, is sealed and is open on the
--      queue side, by this call or an earlier run of it; 0: something of this id is there, and nothing was done
-- REPEAT  the same generations; 0 for a request that has ended or was changed since
-- FLAGS

--- @include now, digits, generation, lane, options, first-open, compact

local open, agenda, counters, pushed, list = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local graceMs, windowMs, leaseMs, priority, channel, options =
  tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local requests, submissions = { unpack(KEYS, 6) }, { unpack(ARGV, 7) }

-- What is asked for, in the order of the keys, and the ids.
local function asked()
  local all, ids, next = {}, {}, 1
  for i = 1, #requests, 3 do
    local id, owner, call, count = unpack(submissions, next, next + 3)
    all[#all + 1] = {
      request = requests[i], work = requests[i + 1], results = requests[i + 2], id = id, owner = owner, call = call,
      first = next + 4, count = tonumber(count),
    }
    ids[#ids + 1] = id
    next = next + 4 + count
  end
  return all, ids
end

-- The generation of a request that an earlier run of this call made and that is still as it made it, as text; '0': it is
-- another.
local function madeBefore(one, opened)
  local v
  if isCompact(one.request) then
    v = someOfCompact(readCompact(one.request), { 'generation', 'status', 'sealedBy', 'createdBy' })
  else
    v = redis.call('HMGET', one.request, 'generation', 'status', 'sealedBy', 'createdBy')
  end
  local same = v[1] and v[1] == opened and v[2] == 'sealed' and v[3] == one.owner and
    --[[cure: a submission that is sent twice finds its own request only]] (v[4] or '') == one.call
  return same and v[1] or '0'
end

-- Decides about each request before anything is written: the generation of each, as it is replied. Returns those that
-- are to be written, and the last generation that was given out.
local function decide(all, ids, at, last)
  local none = redis.call('EXISTS', unpack(requests)) == 0
  local known = redis.call('HMGET', open, unpack(ids))
  local generations, new, seen = {}, {}, {}
  for i, one in ipairs(all) do
    local opened = tonumber(known[i])
    if seen[one.id] then
      generations[i] = '0'
    elseif not none and --[[cure: what is there of an id is left alone]] redis.call('EXISTS', one.request, one.work, one.results) > 0
    then
      generations[i] = madeBefore(one, known[i])
    elseif opened and --[[cure: an id that was opened long ago is left alone]] at - opened > windowMs then
      generations[i] = '0'
    else
      last = opened and last or nextGeneration(last, at, 0)
      one.generation, one.isOpen = opened or last, opened ~= nil
      one.life = digits(one.generation)
      generations[i] = one.life
      new[#new + 1] = one
    end
    seen[one.id] = true
  end
  return generations, new, last
end

-- What the states of the requests of this call have in common. Redis searches a state from its beginning, so what
-- workers read comes first, also among the options. What the others have not in common with the `first` is written
-- over it.
local function common(first, at, out, options)
  local fields = { 'generation', first.life, 'total', digits(first.count), 'largest', digits(first.largest),
    'createUntil', digits(first.createUntil), 'status', 'sealed', 'succeeded', '0', 'failed', '0', 'cancelled', '0',
    'granted', '0', 'out', out, 'outBefore', '0', 'epoch', '1', 'createdAt', digits(at) }
  local n = #fields
  for i = 1, #options do
    fields[n + i] = options[i]
  end
  n = n + #options
  fields[n + 1], fields[n + 2], fields[n + 3], fields[n + 4] = 'leaseMs', leaseMs, 'producerUntil', digits(at + leaseMs)
  return fields
end

-- What is different in the state of each. `first`: of whom the rest is.
local function own(one, first)
  -- The create of the separate calls counts as an item (docs/protocol.md, "One round trip").
  local fields = { 'owner', one.owner, 'sealedBy', one.owner, 'sent:' .. one.owner, digits(one.count + 1) }
  local function add(field, value)
    fields[#fields + 1], fields[#fields + 2] = field, value
  end
  if one.call ~= '' then
    add('createdBy', one.call)
  end
  if one.life ~= first.life then
    add('generation', one.life)
  end
  if one.count ~= first.count then
    add('total', digits(one.count))
  end
  if one.largest ~= first.largest then
    add('largest', digits(one.largest))
  end
  if one.createUntil ~= first.createUntil then
    add('createUntil', digits(one.createUntil))
  end
  return fields
end

local function writeStates(new, fields)
  for _, one in ipairs(new) do
    redis.call('HSET', one.request, unpack(fields))
    redis.call('HSET', one.request, unpack(own(one, new[1])))
  end
end

-- Writes the sub-requests of a request.
local function writeItems(one)
  redis.call('XGROUP', 'CREATE', one.work, 'workers', '0', 'MKSTREAM')
  local prefix = one.life .. '-'
  for i = 0, one.count - 1 do
    redis.call('XADD', one.work, prefix .. i, 'p', submissions[one.first + i])
  end
end

-- The options that have a place of their own in a compact request, besides `notify`.
local PLACED = { 'priority', 'limit', 'task', 'attempts', 'policy', 'results', 'retentionMs' }

-- Writes the requests in their compact form. `out`: tokens of each · `fields`, `value`: of the options.
local function writeCompact(new, at, out, fields, value)
  local others, placed = { 'leaseMs', leaseMs }, { notify = true }
  for _, name in ipairs(PLACED) do
    placed[name] = true
  end
  for i = 1, #fields, 2 do
    if not placed[fields[i]] then
      others[#others + 1], others[#others + 2] = fields[i], fields[i + 1]
    end
  end
  local c = {
    '', 0, out, 0, 1, '', 0, 0, 0, 0, value.priority, value.limit, value.task, value.attempts, value.policy, value.results,
    tonumber(value.retentionMs), value.notify or '', at, 0, '', '', 0, cmsgpack.pack(others), '', 0, 0, 0, '', {},
    tonumber(value.heldUntil) or 0,
  }
  local written = {}
  for i, one in ipairs(new) do
    c[1], c[2], c[20], c[21], c[22], c[23], c[25] =
      one.life, one.count, one.createUntil, one.owner, one.call, one.largest,
      table.concat(submissions, '\30', one.first, one.first + one.count - 1)
    written[2 * i - 1], written[2 * i] = one.request, cmsgpack.pack(c)
  end
  redis.call('MSET', unpack(written))
end

-- Whether requests with these options may be compact. Where two crashes fail a sub-request, workers read only as much as
-- they have permits for. One that is kept for a shorter time than its create may come is remembered for longer (lib/complete).
local function mayBeCompact(value)
  for _, name in ipairs(PLACED) do
    if not value[name] then
      return false
    end
  end
  return
    -- cure: where few crashes are allowed a request is not compact
    (tonumber(value.maxCrashes) or 0) > 2 and
    -- cure: a generation is remembered until its create is too old, of a compact request
    tonumber(value.retentionMs) > windowMs + 1000
end

-- Up to how many sub-requests, and bytes of them, a request is compact.
local COMPACT_ITEMS, COMPACT_BYTES = 128, 16384

-- Measures the requests. Returns those that become compact, and the others.
local function measure(new, at, mayBe)
  local compact, usual = {}, {}
  for _, one in ipairs(new) do
    one.largest, one.bytes, one.createUntil = 0, 0, math.min(one.generation, at) + windowMs
    local plain = true
    for i = one.first, one.first + one.count - 1 do
      one.largest, one.bytes = math.max(one.largest, #submissions[i]), one.bytes + #submissions[i]
      plain = plain and --[[cure: what separates payloads is in none of them]] not submissions[i]:find('\30', 1, true)
    end
    local fits = one.count > 0 and one.count <= COMPACT_ITEMS and one.bytes <= COMPACT_BYTES
    local form = fits and plain and mayBe and compact or usual
    form[#form + 1] = one
  end
  return compact, usual
end

-- Opens the ids that are not open yet, and puts all on the agenda.
local function openIds(new, at, last, openedAt, tendAt)
  local opened, times, time = {}, {}, digits(tendAt)
  for i, one in ipairs(new) do
    if not one.isOpen then
      opened[#opened + 1], opened[#opened + 2] = one.id, one.life
    end
    times[2 * i - 1], times[2 * i] = time, one.id
  end
  redis.call('ZADD', agenda, 'LT', unpack(times))
  if #opened > 0 then
    redis.call('HSET', open, unpack(opened))
    redis.call('HSET', counters, 'generation', digits(last),
      -- cure: a whole request shows how far the clock was
      'openedAt', digits(math.max(at, openedAt)))
    noteFirst(counters, openedAt > 0, at)
    -- cure: the counts of a queue in use do not expire, 3
    redis.call('PERSIST', counters)
  end
end

-- Pushes the first token of each. `due`: of those that are expedited.
local function push(new, due)
  local tokens = {}
  for i, one in ipairs(new) do
    tokens[i] = one.id .. '~' .. one.life .. '~1'
  end
  if not due then
    redis.call('HINCRBY', pushed, priority, #tokens)
    redis.call('LPUSH', list, unpack(tokens))
    return
  end
  noteLane(pushed, priority, channel)
  for _, token in ipairs(tokens) do
    pushIntoLane(list, token .. '~' .. due, 1)
  end
end

local at = now()
local all, ids = asked()
local v = redis.call('HMGET', counters, 'generation', 'openedAt')
local generations, new, last = decide(all, ids, at, tonumber(v[1]) or 0)
if #new == 0 then
  return { 'submitted', table.concat(generations, ' ') }
end
local fields, value = optionFields(cjson.decode(options), at)
local heldUntil = tonumber(value.heldUntil) or 0
local out = --[[cure: a held request is submitted without a token]] heldUntil > at and '0' or '1'
-- While it is held there is no token that could get lost: it needs attention when something begins or ends.
local tendAt = out == '1' and at + graceMs or heldUntil
-- cure: a whole request is tended at its deadline
tendAt = math.min(tendAt, value.deadline or math.huge)
local compact, usual = measure(new, at, mayBeCompact(value))
if #compact > 0 then
  writeCompact(compact, at, tonumber(out), fields, value)
end
if #usual > 0 then
  writeStates(usual, common(usual[1], at, out, fields))
  for _, one in ipairs(usual) do
    writeItems(one)
  end
end
openIds(new, at, last, tonumber(v[2]) or 0, tendAt)
if out == '1' then
  push(new, value.due)
end
return { 'submitted', table.concat(generations, ' ') }
