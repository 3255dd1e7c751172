--- Ends the adding of sub-requests. A request with none, or with all of them settled, completes here.
--
-- KEYS
--   request   any     state of the request
--   work      stream  its sub-requests
--   due       zset    delayed and returned sub-requests
--   tries     hash    index -> failed attempts; 'index:crashes' -> crashes; 'index:alone' -> worker
--   progress  hash    index -> what its handler last reported
--   failed    hash    index -> error; 'index:payload' -> payload
--   results   stream  outcomes in the order of settling
-- ARGV
--   generation  int     of the request
--   producer    string  who seals
--   sent        int     how many items this producer has appended in total
--   channel     string  shard channel of the request
-- REPLIES
--   {'sealed', total: int}    no more will be added
--   {'gap', sent: int}        this producer's items from number `sent` are missing; still open
--   {'complete', outcome: outcome, spentAt: int?}  the request is complete · spentAt: for `finish`
--   {'cancelling'}       it is being cancelled
--   {'gone'}             no such generation
-- REPEAT  the same reply
-- FLAGS allow-oom

--- @include now, digits, compact, state, exceeded, replace, notice, complete

local request, work, due, tries, progress, failed, results =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local generation, producer, sent, channel = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]

makeUsual(request, work, results)
local state = readState(request, work, generation)
if not state then
  return { 'gone' }
end
if state.status == 'complete' then
  -- Written again, so that a WAIT behind a repeated seal has a write to wait for that covers it.
  redis.call('HSET', request, 'status', 'complete')
  return { 'complete', endOf(request, work) }
end
if state.status == 'cancelling' then
  return { 'cancelling' }
end
if state.status == 'open' then
  local known = tonumber(redis.call('HGET', request, 'sent:' .. producer)) or 0
  if known < sent then
    return { 'gap', known }
  end
  state.status = 'sealed'
  redis.call('HSET', request, 'status', 'sealed', 'sealedBy', producer)
  local spent = { kept = { failed, results }, keys = { work, due, tries, progress } }
  local outcome = completeIfDone(request, state, state.at, channel, spent)
  if outcome then
    return { 'complete', outcome, state.spentAt }
  end
else
  redis.call('HSET', request, 'status', 'sealed')
end
return { 'sealed', state.total }
