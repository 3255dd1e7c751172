--- Extends the lease of the permits of a worker, and keeps what its handlers reported. Never brings withdrawn
--- permits back, and keeps no checkpoint of a sub-request that another worker owns by now.
--
-- KEYS
--   request   any     state of the request
--   work      stream  its sub-requests
--   tries     hash    index -> failed attempts; 'index:crashes', 'index:alone'; 'index:checkpoint' -> JSON
--   progress  hash    index -> what its handler last reported
-- ARGV
--   generation  int     of the request
--   worker      string  boot id of the worker process
--   leaseMs     int     how long the permits last from here
--   reports...  value   index, number or 'index:checkpoint', JSON, … of handlers that reported since
-- REPLIES
--   {'ok', permits: int}  extended
--   {'cancelling', permits: int}  extended; the request is being cancelled: abort its handlers
--   {'lost'}         the worker has no permit: abort its handlers
--   {'gone'}         no such generation, or complete
-- REPEAT  extends again
-- FLAGS allow-oom

--- @include now, digits, compact, state

local request, work, tries, progress = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local generation, worker, leaseMs = ARGV[1], ARGV[2], tonumber(ARGV[3])

-- Extends the lease of a compact request, which stays so. Returns its permits; nil: it needs its full form.
local function renewCompact()
  local c = readCompact(request)
  if c[GENERATION] ~= generation or c[COMPLETED_AT] > 0 or
    -- cure: the lease of a compact request is of the worker that has it
    c[WORKER] ~= worker then
    return nil
  end
  c[LEASE_ENDS] = now() + leaseMs
  redis.call('SET', request, cmsgpack.pack(c))
  return c[PERMITS]
end

if #ARGV == 3 and isCompact(request) then
  local permits = renewCompact()
  if permits then
    return { 'ok', permits }
  end
end
local state = readState(request, work, generation)
if not state or state.status == 'complete' then
  return { 'gone' }
end
local permits = redis.call('HGET', request, 'permits:' .. worker)
if not permits then
  return { 'lost' }
end
redis.call('HSET', request, 'lease:' .. worker, state.at + leaseMs)
local numbers, checkpoints = {}, {}
for i = 4, #ARGV, 2 do
  local field, value = ARGV[i], ARGV[i + 1]
  local index = field:match('^(%d+):checkpoint$')
  if not index then
    numbers[#numbers + 1] = field
    numbers[#numbers + 1] = value
  else
    local id = generation .. '-' .. index
    -- cure: a checkpoint counts from its owner only
    if redis.call('XPENDING', work, 'workers', id, id, 1, worker)[1] then
      checkpoints[#checkpoints + 1] = field
      checkpoints[#checkpoints + 1] = value
    end
  end
end
if #numbers > 0 then
  redis.call('HSET', progress, unpack(numbers))
end
if #checkpoints > 0 then
  -- Tells `settle` that there are some to be taken out.
  -- cure: a checkpoint goes with its success
  redis.call('HSET', request, 'checkpoints', 1)
  redis.call('HSET', tries, unpack(checkpoints))
end
if state.status == 'cancelling' then
  return { 'cancelling', tonumber(permits) }
end
return { 'ok', tonumber(permits) }
