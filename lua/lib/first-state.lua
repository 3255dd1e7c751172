--- @needs options, compact
-- Writes the first state of requests, for `create` and `submit`. A request is a table:
--
--   request, work  its keys
--   generation     a number; `life`: the same as text
--   owner, call    name of the submission; name of the call that makes the request, or ''
--   items          a list that holds its items: `count` of them, from index `first` on
--
-- With items it is sealed, and one token of it is out unless it is held. Without items it is open.
-- Both forms are made of one array, which lib/compact explains.

-- The options that have a place of their own in the array, besides `notify`.
local PLACED = { 'priority', 'limit', 'task', 'attempts', 'policy', 'results', 'retentionMs' }

-- What all requests of one call have in common. `options`: JSON array of field, value, …
local function termsOf(options, leaseMs, windowMs, at)
  local fields, value = optionFields(cjson.decode(options), at)
  local others, placed = { 'leaseMs', leaseMs }, { notify = true }
  for _, name in ipairs(PLACED) do
    placed[name] = true
    value[name] = value[name] or ''
  end
  for i = 1, #fields, 2 do
    if not placed[fields[i]] then
      others[#others + 1], others[#others + 2] = fields[i], fields[i + 1]
    end
  end
  local isHeld = (tonumber(value.heldUntil) or 0) > at
  return {
    at = at, windowMs = windowMs, value = value, others = cmsgpack.pack(others),
    -- cure: a held request is submitted without a token
    out = isHeld and 0 or 1,
  }
end

-- Whether a request is as the call of `one` left it, by what its state says.
local function isAsMade(one, status, sealedBy, createdBy)
  return status == 'sealed' and sealedBy == one.owner and
    -- cure: a submission that is sent twice finds its own request only
    (createdBy or '') == one.call
end

-- The array of a request, with these payloads.
local function firstArray(one, terms, payloads)
  local value, largest = terms.value, 0
  for i = one.first, one.first + one.count - 1 do
    largest = math.max(largest, #one.items[i])
  end
  return {
    one.life, one.count, one.count > 0 and terms.out or 0, 0, 1, '', 0, 0, 0, 0,
    value.priority, value.limit, value.task, value.attempts, value.policy, value.results,
    tonumber(value.retentionMs) or 0, value.notify or '', terms.at, math.min(one.generation, terms.at) + terms.windowMs,
    one.owner, one.call, largest, terms.others, payloads, 0, 0, 0, '', {}, tonumber(value.heldUntil) or 0,
  }
end

-- Writes the request as a hash and a stream.
local function writeUsual(one, terms)
  local fields = fieldsOfCompact(firstArray(one, terms, ''))
  if one.count >= 256 then
    -- As `append` does.
    fields[#fields + 1], fields[#fields + 2] = 'filler', string.rep('-', 65)
  end
  makeStream(one.work, one.life, one.items, one.first, one.count)
  redis.call('HSET', one.request, unpack(fields))
end
