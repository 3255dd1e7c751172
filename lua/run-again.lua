--- Moves failed sub-requests into the generation that `redrive` opened: each is ready again under its index, with
--- no attempt behind it, and does not count as failed any more. Indexes rise, also from call to call. An index that
--- has not failed, or has failed anew in this generation, is skipped.
--
-- KEYS
--   request  any     state of the request
--   work     stream  its sub-requests
--   due      zset    delayed and returned sub-requests
--   failed   hash    index -> error; 'index:payload' -> payload; 'index:runs' -> 'generation …'
-- ARGV
--   generation  int     of the new one
--   owner       string  who redrives
--   maxBytes    int     of payloads to move, about
--   indexes...  int     of the failed sub-requests, at most 500
-- REPLIES
--   {'ok', done: int, moved: int, mint: int, epoch: int, priority: int}  done: so many of the indexes were dealt with, the
--      others go into another call · moved: in this generation so far; push `mint` tokens of `epoch`
--   {'sealed'} {'cancelling'} {'complete'}  no longer open, or not for this owner
--   {'gone'}  no such generation
-- REPEAT  'ok' with what tokens are missing then; nothing is moved twice
-- FLAGS

--- @include now, digits, compact, state, books, tokens

local request, work, due, failed = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local generation, owner, maxBytes = ARGV[1], ARGV[2], tonumber(ARGV[3])

local state = readState(request, work, generation)
if not state then
  return { 'gone' }
end
if state.status ~= 'open' then
  return { state.status }
end
local v = redis.call('HMGET', request, 'redriving', 'movedTo', 'leaseMs', 'moved')
-- cure: a redrive belongs to its owner, 2
if v[1] ~= owner then
  return { 'sealed' }
end
local movedTo, leaseMs = tonumber(v[2]) or -1, tonumber(v[3])
local done, moved, bytes, fields = 0, 0, 0, {}
for i = 4, #ARGV do
  if bytes >= maxBytes then
    break
  end
  local index = ARGV[i]
  local kept = { index, index .. ':payload', index .. ':runs' }
  local one = redis.call('HMGET', failed, unpack(kept))
  local life = (one[3] or ''):match('^%d+')
  if one[1] and
    -- cure: a failure moves once
    life ~= generation and
    -- cure: a failure moves once, 2
    tonumber(index) > movedTo then
    redis.call('XADD', work, generation .. '-' .. index, 'p', one[2] or '')
    movedTo, moved, bytes = tonumber(index), moved + 1, bytes + #(one[2] or '')
    for _, field in ipairs(kept) do
      fields[#fields + 1] = field
    end
  end
  done = done + 1
end

local at = now()
-- cure: a moved failure is not counted as failed
state.failed = state.failed - moved
state.settled = state.settled - moved
-- Absolute, as the reply may get lost.
local movedSoFar = (tonumber(v[4]) or 0) + moved
redis.call('HSET', request, 'failed', state.failed, 'movedTo', movedTo, 'moved', movedSoFar,
  'producerUntil', at + leaseMs)
local mint = topUp(request, state, readBooks(state, work, due, at))
if #fields > 0 then
  -- cure: a moved failure is not counted as failed, 2
  redis.call('HDEL', failed, unpack(fields))
end
return { 'ok', done, movedSoFar, mint, state.epoch, state.priority }
