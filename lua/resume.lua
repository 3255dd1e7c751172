--- Lets a paused request go on, and mints the tokens that are missing.
--
-- KEYS
--   request   hash    state of the request
--   work      stream  its sub-requests
--   due       zset    delayed and returned sub-requests
-- ARGV
--   generation  int     of the request
-- REPLIES
--   {'ok', mint: int, epoch: int, priority: text}  it goes on, perhaps it did before; push `mint` tokens of `epoch`
--   {'cancelling'}         it is being cancelled
--   {'complete', outcome: outcome}  the request is complete
--   {'gone'}               no such life
-- REPEAT  'ok' with what tokens are missing then
-- FLAGS allow-oom

--- @include now, state, books, tokens

local request, work, due = KEYS[1], KEYS[2], KEYS[3]
local generation = ARGV[1]

local state = readState(request, generation)
if not state then
  return { 'gone' }
end
if state.status == 'complete' then
  return { 'complete', redis.call('HGET', request, 'outcome') }
end
if state.status == 'cancelling' then
  return { 'cancelling' }
end
redis.call('HDEL', request, 'paused')
-- Read again, because it may be halted for another reason.
state = readState(request, generation)
local mint = topUp(request, state, readBooks(state, work, due, now()))
return { 'ok', mint, state.epoch, state.priority }
