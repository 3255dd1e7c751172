--- Brings a request into being: its state and the empty stream of its sub-requests.
--
-- KEYS
--   request   hash    state of the request
--   work      stream  its sub-requests; group 'workers'
-- ARGV
--   generation  int     from intent
--   owner       string  name of this submission; tells a repetition from another submitter
--   windowMs    int     a create older than this is refused, as its tombstone may be gone
--   leaseMs     int     how long the producer is believed without a sign of life
--   fields...   value  field, value, … of the options. Two are lengths, and what ends with them is
--                       kept too: delayMs until heldUntil, deadlineMs until deadline. With expedite,
--                       priority becomes 'priority~due', which every reply hands on
-- REPLIES
--   {'created', look: int}  the request exists, is open and is ours · look: server time at which it has to
--      be looked at, as something begins or ends then; 0: none
--   {'exists', status: text, generation: int, digest: text, sealedBy: text, sent: int, total: int}
--      a request of this id lives or is retained · sealedBy: the producer that sealed it, or ''
--      sent: how many items that one appended
--   {'void', above: int}  this generation was given up, or has had its life; start again with an intent
--      above that one
-- REPEAT  'created' (once it is not open any more: 'exists'), nothing changes
-- FLAGS

--- @include now

local request, work = KEYS[1], KEYS[2]
local generation, owner, windowMs, leaseMs =
  ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])

local function look()
  local times = redis.call('HMGET', request, 'heldUntil', 'deadline')
  local first, second = tonumber(times[1]), tonumber(times[2])
  return math.min(first or second or 0, second or first or 0)
end

local at = now()
local v = redis.call('HMGET', request, 'generation', 'status', 'owner', 'digest', 'voided')
if v[1] then
  local known, asked = tonumber(v[1]), tonumber(generation)
  local tombstone = v[2] == 'void' or v[2] == 'dropped'
  if asked < known or (asked == known and tombstone) then
    -- A life that is there is met under its own generation, so the queue side may still have it open.
    return { 'void', tombstone and known or known - 1 }
  end
  if asked == known and v[3] == owner and v[2] == 'open' then
    return { 'created', look() }
  end
  if not tombstone then
    if asked > known then
      -- Whoever is refused takes this generation off the queue side, so nobody may create it later.
      redis.call('HSET', request, 'voided', math.max(asked, tonumber(v[5]) or 0))
      redis.call('PEXPIRE', request, windowMs, 'GT')
    end
    local sealedBy = redis.call('HGET', request, 'sealedBy') or ''
    local sent = tonumber(redis.call('HGET', request, 'sent:' .. sealedBy)) or 0
    local total = tonumber(redis.call('HGET', request, 'total'))
    return { 'exists', v[2], v[1], v[4] or '', sealedBy, sent, total }
  end
elseif at - generation > windowMs then
  -- By a clock that goes back since it would be young again, and whoever is refused takes it off the queue side.
  redis.call('HSET', request, 'generation', generation, 'status', 'void')
  redis.call('PEXPIRE', request, windowMs)
  return { 'void', tonumber(generation) }
elseif redis.call('EXISTS', work) == 1 then
  -- What is left of a life whose retention was shorter than the window, or of one deleted by hand.
  local info = redis.call('XINFO', 'STREAM', work)
  for i = 1, #info, 2 do
    local last = info[i] == 'last-generated-id' and tonumber(info[i + 1]:match('^%d+')) or 0
    if tonumber(generation) <= last then
      return { 'void', last }
    end
  end
end

local fields = {
  'generation', generation, 'owner', owner, 'status', 'open', 'total', 0, 'succeeded', 0,
  'failed', 0, 'cancelled', 0, 'largest', 0, 'granted', 0, 'out', 0, 'outBefore', 0, 'epoch', 1,
  'createdAt', at, 'leaseMs', leaseMs, 'producerUntil', at + leaseMs,
  'createUntil', math.min(generation, at) + windowMs,
}
for i = 5, #ARGV do
  fields[#fields + 1] = ARGV[i]
end
for i = 5, #ARGV, 2 do
  local ends = ARGV[i] == 'delayMs' and 'heldUntil' or ARGV[i] == 'deadlineMs' and 'deadline'
  if ends then
    fields[#fields + 1] = ends
    fields[#fields + 1] = at + ARGV[i + 1]
    if ends == 'heldUntil' then
      fields[#fields + 1] = 'heldFor'
      fields[#fields + 1] = at + ARGV[i + 1] .. ' ' .. ARGV[i + 1]
    end
  end
end
local given = {}
for i = 1, #fields, 2 do
  given[fields[i]] = fields[i + 1]
end
if given.expedite then
  fields[#fields + 1] = 'priority'
  local due = math.min(given.heldUntil or at, 2 ^ 44 - 1)
  fields[#fields + 1] = ('%s~%.0f'):format(given.priority, due)
end
redis.call('DEL', work)
redis.call('XGROUP', 'CREATE', work, 'workers', 0, 'MKSTREAM')
redis.call('HSET', request, unpack(fields))
redis.call('PERSIST', request)
return { 'created', look() }
