--- Creates a request: its state and the empty stream of its sub-requests.
--
-- KEYS
--   request  hash    state of the request
--   work     stream  its sub-requests; group 'workers'
--   results  stream  outcomes in the order of settling
-- ARGV
--   generation  int     from intent
--   owner       string  name of this submission; tells a repetition from another submitter
--   windowMs    int     a create older than this is refused, as its tombstone may be gone
--   leaseMs     int     length of the producer lease
--   fields...   value   field, value, … of the options. Two are lengths, and what ends with them is
--                       kept too: delayMs until heldUntil, deadlineMs until deadline. With expedite,
--                       priority becomes 'priority~due', which every reply hands on
-- REPLIES
--   {'created', tendAt: int}  the request exists, is open and is ours · tendAt: server time at which it has to
--      be tended, as something begins or ends then; 0: none
--   {'exists', status: text, generation: int, digest: text, sealedBy: text, sent: int, total: int}
--      a request of this id is unfinished or retained · sealedBy: the producer that sealed it, or ''
--      sent: how many items that one appended
--   {'void', above: int}  this generation was given up, or has ended; start again with an intent
--      above that one
-- REPEAT  'created' (once it is not open any more: 'exists'), nothing changes
-- FLAGS

--- @include now, digits, compact, options

local request, work, results = KEYS[1], KEYS[2], KEYS[3]
local generation, owner, windowMs, leaseMs =
  ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local fields = { unpack(ARGV, 5) }

-- The first time at which something begins or ends; 0: never.
local function tendAt()
  local times = redis.call('HMGET', request, 'heldUntil', 'deadline')
  local first, second = tonumber(times[1]), tonumber(times[2])
  return math.min(first or second or 0, second or first or 0)
end

-- Whether the stream was left by this generation or a later one, whose retention was shorter than the window or which was
-- deleted by hand. Returns the generation of its last entry then.
local function endedBefore()
  local info = redis.call('XINFO', 'STREAM', work)
  for i = 1, #info, 2 do
    local last = info[i] == 'last-generated-id' and tonumber(info[i + 1]:match('^%d+')) or 0
    if tonumber(generation) <= last then
      return last
    end
  end
end

-- The refused caller takes the generation that it `asked` for off the queue side, so nobody may create it later.
local function refuse(asked, voided)
  -- cure: a refused generation is refused to everybody
  redis.call('HSET', request, 'voided', math.max(asked, tonumber(voided) or 0))
  redis.call('PEXPIRE', request, windowMs, 'GT')
end

-- Writes the state of a new request, and the empty stream of its sub-requests.
local function open(at)
  -- There are results without a state if somebody deleted that.
  -- cure: a new request has no results
  redis.call('UNLINK', results)
  redis.call('DEL', work)
  redis.call('XGROUP', 'CREATE', work, 'workers', 0, 'MKSTREAM')
  redis.call('HSET', request, 'generation', generation, 'owner', owner, 'status', 'open', 'total', 0,
    'succeeded', 0, 'failed', 0, 'cancelled', 0, 'largest', 0, 'granted', 0, 'out', 0, 'outBefore', 0, 'epoch', 1,
    'createdAt', at, 'leaseMs', leaseMs, 'producerUntil', at + leaseMs,
    'createUntil', math.min(generation, at) + windowMs, unpack((optionFields(fields, at))))
  redis.call('PERSIST', request)
end

local at = now()
if isCompact(request) then
  expand(request, work, results)
end
local current, status, ownedBy, digest, voided =
  unpack(redis.call('HMGET', request, 'generation', 'status', 'owner', 'digest', 'voided'))
if current then
  local known, asked = tonumber(current), tonumber(generation)
  local tombstone = status == 'void' or status == 'dropped'
  if asked < known or (asked == known and tombstone) then
    -- A generation that is there is met under its own number, so the queue side may still have it open.
    return { 'void', tombstone and known or known - 1 }
  end
  if asked == known and ownedBy == owner and status == 'open' then
    return { 'created', tendAt() }
  end
  if not tombstone then
    if asked > known then
      refuse(asked, voided)
    end
    local sealedBy = redis.call('HGET', request, 'sealedBy') or ''
    local sent = tonumber(redis.call('HGET', request, 'sent:' .. sealedBy)) or 0
    local total = tonumber(redis.call('HGET', request, 'total'))
    return { 'exists', status, current, digest or '', sealedBy, sent, total }
  end
elseif at - generation > windowMs then
  -- If the clock goes back, this create is young again; but the refused caller takes it off the queue side.
  -- cure: a create too old is refused for good
  redis.call('HSET', request, 'generation', generation, 'status', 'void')
  redis.call('PEXPIRE', request, windowMs)
  return { 'void', tonumber(generation) }
-- cure: a generation is remembered until its create is too old
elseif redis.call('TYPE', work).ok == 'stream' then
  local last = endedBefore()
  if last then
    return { 'void', last }
  end
end
open(at)
return { 'created', tendAt() }
