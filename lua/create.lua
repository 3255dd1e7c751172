--- Creates a request. With items, these are all that it gets: it is sealed, and its first token is counted. Without items
--- it is open, and `append` adds them.
--
-- KEYS
--   request  any     state of the request
--   work     stream  its sub-requests; group 'workers'
--   results  stream  outcomes in the order of settling
-- ARGV
--   generation  int     from intent
--   owner       string  name of this submission; tells a repetition from another submitter
--   windowMs    int     a create older than this is refused, as its tombstone may be gone
--   leaseMs     int     length of the producer lease
--   call        string  names the call; of several with one owner, the request records which one made it; '': none
--   options     string  JSON array of field, value, … Two are lengths, and what ends with them is kept too: delayMs
--                       until heldUntil, deadlineMs until deadline. With expedite, priority becomes
--                       'priority~due', which every reply hands on
--   items...    value   all its items
-- REPLIES
--   {'created', tendAt: int, createdBy: text}  the request exists, is open and is ours · tendAt: server time at which
--      it has to be tended, as something begins or ends then; 0: none · createdBy: the call that made it, or ''
--   {'sealed', tendAt: int, mint: int, epoch: int, priority: text}  this call has made it, with all its items, and it is
--      still sealed; push `mint` tokens of `epoch`
--   {'exists', status: text, generation: int, digest: text, sealedBy: text, sent: int, total: int, createdBy: text}
--      a request of this id is unfinished or retained · sealedBy: the producer that sealed it, or ''
--      sent: how many items that one appended
--   {'void', above: int}  this generation was given up, or has ended; start again with an intent
--      above that one
-- REPEAT  the same while it is open, or sealed as this call made it; else 'exists'. Nothing changes
-- FLAGS

--- @include now, digits, options, compact, first-state

local request, work, results = KEYS[1], KEYS[2], KEYS[3]
local generation, owner, windowMs, leaseMs, call, options =
  ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5], ARGV[6]
local items = { unpack(ARGV, 7) }
local one = {
  request = request, work = work, generation = tonumber(generation), life = generation, owner = owner, call = call,
  items = items, first = 1, count = #items,
}

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

-- Writes the new request, and returns what its tokens are.
local function make(at)
  local terms = termsOf(options, leaseMs, windowMs, at)
  -- There are results without a state if somebody deleted that.
  -- cure: a new request has no results
  redis.call('UNLINK', results)
  writeUsual(one, terms)
  redis.call('PERSIST', request)
  return terms.out, terms.value.priority
end

local at = now()
makeUsual(request, work, results)
local current, status, ownedBy, digest, voided, sealedBy, createdBy, total, out, epoch, priority = unpack(redis.call(
  'HMGET', request, 'generation', 'status', 'owner', 'digest', 'voided', 'sealedBy', 'createdBy', 'total', 'out', 'epoch',
  'priority'))
if current then
  local known, asked = tonumber(current), tonumber(generation)
  local tombstone = status == 'void' or status == 'dropped'
  if asked < known or (asked == known and tombstone) then
    -- A generation that is there is met under its own number, so the queue side may still have it open.
    return { 'void', tombstone and known or known - 1 }
  end
  if asked == known and #items == 0 and ownedBy == owner and status == 'open' then
    return { 'created', tendAt(), createdBy or '' }
  end
  if asked == known and #items > 0 and isAsMade(one, status, sealedBy, createdBy) then
    return { 'sealed', tendAt(), out, epoch, priority }
  end
  if not tombstone then
    if asked > known then
      refuse(asked, voided)
    end
    local sent = tonumber(redis.call('HGET', request, 'sent:' .. (sealedBy or ''))) or 0
    return { 'exists', status, current, digest or '', sealedBy or '', sent, tonumber(total), createdBy or '' }
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
local mint, priority = make(at)
if #items == 0 then
  return { 'created', tendAt(), call }
end
return { 'sealed', tendAt(), mint, 1, priority }
