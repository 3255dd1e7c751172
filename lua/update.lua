--- Changes a request that goes on. A raised limit mints; a lowered one grants nothing until so many
--- have ended that running work is below it, and every settle says how many permits are left.
---
--- A changed priority leaves the tokens in the old list to themselves. The epoch makes a step of two,
--- so that they are of neither of the two epochs that count: they die at `enter`, and whatever the
--- queue side has marked of them means nothing here. What is missing is minted into the new list.
--
-- KEYS
--   request   hash    state of the request
--   work      stream  its sub-requests
--   due       zset    delayed and returned sub-requests
-- ARGV
--   generation         int     of the request
--   limit              int|''     the new one, or '' to leave it
--   priority           int|''     the new one, or '' to leave it
--   toleratedFailures  string  the new one as `create` keeps it, or '' to leave it
-- REPLIES
--   {'ok', mint: int, epoch: int, priority: text}  changed; push `mint` tokens of `epoch` into the list of `priority`
--   {'cancelling'}         it is being cancelled
--   {'complete', outcome: outcome}  the request is complete
--   {'gone'}               no such life
-- REPEAT  'ok' with what tokens are missing then; the epoch makes no further step
-- FLAGS allow-oom

--- @include now, state, books, tokens

local request, work, due = KEYS[1], KEYS[2], KEYS[3]
local generation, limit, priority, toleratedFailures = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

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
if limit ~= '' then
  state.limit = tonumber(limit)
  redis.call('HSET', request, 'limit', limit)
end
if toleratedFailures ~= '' then
  redis.call('HSET', request, 'toleratedFailures', toleratedFailures)
end
local known, suffix = state.priority:match('^(%d+)(.*)$')
if priority ~= '' and priority ~= known then
  state.priority, state.epoch, state.out, state.outBefore = priority .. suffix, state.epoch + 2, 0, 0
  redis.call('HSET', request, 'priority', state.priority, 'epoch', state.epoch, 'out', 0, 'outBefore', 0)
end
local mint = topUp(request, state, readBooks(state, work, due, now()))
return { 'ok', mint, state.epoch, state.priority }
