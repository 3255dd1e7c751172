--- Changes an unfinished request, pauses it or resumes it. A raised limit mints tokens; a lowered one grants nothing
--- until running work is below it, and every settle answers how many permits are left. While a request is paused, no
--- permit is granted and no token minted. What runs may end; a worker keeps only the permits of running handlers.
---
--- A changed priority abandons the tokens in the old list. The epoch makes a step of two, so that they belong to
--- neither of the two epochs that count: they die at `enter`, and what the queue side has marked of them means
--- nothing here. The missing tokens are minted into the new list.
--
-- KEYS
--   request  any     state of the request
--   work     stream  its sub-requests
--   due      zset    delayed and returned sub-requests
-- ARGV
--   generation         int     of the request
--   limit              int|''  the new one, or '' to leave it
--   priority           int|''  the new one, or '' to leave it
--   toleratedFailures  string  the new one as `create` keeps it, or '' to leave it
--   paused             int|''  1: pauses it; 0: resumes it; '' to leave it
-- REPLIES
--   {'ok', mint: int, epoch: int, priority: text}  changed; push `mint` tokens of `epoch` into the list of `priority`
--   {'cancelling'}         it is being cancelled
--   {'complete', outcome: outcome}  the request is complete
--   {'gone'}               no such generation
-- REPEAT  'ok' with what tokens are missing then; the epoch makes no further step
-- FLAGS allow-oom

--- @include now, digits, compact, state, books, tokens

local request, work, due = KEYS[1], KEYS[2], KEYS[3]
local generation, limit, priority, toleratedFailures, paused = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

local state = readState(request, work, generation)
if not state then
  return { 'gone' }
end
if state.status == 'complete' then
  return { 'complete', (endOf(request, work)) }
end
if state.status == 'cancelling' then
  return { 'cancelling' }
end
if paused ~= '' then
  if paused == '1' then
    redis.call('HSET', request, 'paused', 1)
  else
    redis.call('HDEL', request, 'paused')
  end
  -- A resumed request may still be held.
  -- cure: top-up in resume
  state.halted = paused == '1' or state.heldUntil > state.at
end
-- Keeps the value that the request was submitted with.
local function keepGiven(field, value)
  redis.call('HSETNX', request, 'given:' .. field, value)
end

if limit ~= '' then
  keepGiven('limit', ('%.0f'):format(state.limit))
  state.limit = tonumber(limit)
  -- cure: permits above a lowered limit are taken back, 2
  redis.call('HSET', request, 'limit', limit)
end
if toleratedFailures ~= '' then
  keepGiven('toleratedFailures', redis.call('HGET', request, 'toleratedFailures') or '')
  redis.call('HSET', request, 'toleratedFailures', toleratedFailures)
end
local known, suffix = state.priority:match('^(%d+)(.*)$')
if priority ~= '' and --[[cure: a change of the priority is made once]] priority ~= known then
  keepGiven('priority', known)
  state.priority, state.epoch, state.out, state.outBefore = priority .. suffix, state.epoch +
    -- cure: tokens of an old priority die
    2,
    -- cure: tokens of an old priority die, 2
    0, 0
  redis.call('HSET', request, 'priority', state.priority, 'epoch', state.epoch, 'out', 0, 'outBefore', 0)
end
-- cure: top-up in update
local mint = topUp(request, state, readBooks(state, work, due, now()))
return { 'ok', mint, state.epoch, state.priority }
