--- Submits requests whose items are all known: does what `intent`, `create` and `push` do, in one call, for a server that
--- has both sides. A small request is compact (lib/compact). The requests of one call have the same options. An id of
--- which anything is there is left alone: the separate calls find out what it is. All of a request is written, or none,
--- and a server that loses its last writes loses all of it.
--
-- KEYS
--   open         hash  id -> generation of every open request
--   agenda       zset  id -> time of its next attention
--   counters     hash  counts of this queue, as in `intent`
--   pushed       hash  priority -> tokens ever pushed to its list
--   list         list  tokens of the priority; with `expedite` among the options, its lane
--   requests...  any   of each request: its state, its sub-requests, and its results
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

--- @include now, digits, generation, lane, options, open-ids, compact, first-state, first-compact

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
      items = submissions, first = next + 4, count = tonumber(count),
    }
    ids[#ids + 1] = id
    next = next + 4 + count
  end
  return all, ids
end

-- The generation of a request that an earlier run of this call made and that is still as it made it, as text; '0': it is
-- another.
local function madeBefore(one, opened)
  local v = fieldsOf(one.request, { 'generation', 'status', 'sealedBy', 'createdBy' })
  return v[1] and v[1] == opened and isAsMade(one, v[2], v[3], v[4]) and v[1] or '0'
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

-- Opens the ids that are not open yet, and puts all on the agenda.
local function openNew(new, last, at, openedAt, tendAt)
  local opened, times = {}, {}
  for i, one in ipairs(new) do
    if not one.isOpen then
      opened[#opened + 1], opened[#opened + 2] = one.id, one.life
    end
    times[2 * i - 1], times[2 * i] = tendAt, one.id
  end
  if #opened > 0 then
    openIds(open, counters, opened, digits(last), at, openedAt)
  end
  redis.call('ZADD', agenda, 'LT', unpack(times))
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
local terms = termsOf(options, leaseMs, windowMs, at)
local value = terms.value
-- While it is held there is no token that could get lost: it needs attention when something begins or ends.
local tendAt = terms.out == 1 and at + graceMs or tonumber(value.heldUntil)
-- cure: a whole request is tended at its deadline
tendAt = math.min(tendAt, value.deadline or math.huge)
openNew(new, last, at, v[2], digits(tendAt))
for _, one in ipairs(writeCompact(new, terms)) do
  writeUsual(one, terms)
end
if terms.out == 1 then
  push(new, value.due)
end
return { 'submitted', table.concat(generations, ' ') }
