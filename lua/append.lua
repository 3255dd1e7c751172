--- Adds sub-requests to an open request and mints the tokens that they need. A producer numbers its own items from
--- 0. With `first`, a chunk that is sent twice, or overlaps an earlier one, adds nothing twice. Several producers
--- may append: each has its own numbering, and the index of a sub-request is the order in which the server received
--- it.
---
--- Many calls will read the state of a request with 256 sub-requests. Redis stores a small hash as a list, in which a
--- field that is missing costs a look at all of them. One value of more than 64 bytes (`filler`) makes it a table
--- (docs/decisions/0047-a-slim-settle.md).
--
-- KEYS
--   request  any     state of the request
--   work     stream  its sub-requests
--   due      zset    delayed and returned sub-requests
-- ARGV
--   generation   int     of the request
--   producer     string  who appends
--   first        int     this producer's number of the first item of this chunk
--   payloads...  string  the items
-- REPLIES
--   {'ok', total: int, mint: int, epoch: int, priority: text}  taken; push `mint` tokens of `epoch`
--   {'gap', sent: int}        a chunk before this one is missing; send from number `sent`
--   {'full', unsettled: int}  the window is full; nothing was added
--   {'sealed'} {'cancelling'} {'complete'}  no longer open
--   {'gone'}             no such generation
-- REPEAT  'ok' with what tokens are missing then; nothing is added
-- FLAGS

--- @include now, digits, compact, state, books, tokens

local request, work, due = KEYS[1], KEYS[2], KEYS[3]
local generation, producer, first = ARGV[1], ARGV[2], tonumber(ARGV[3])

local sentField = 'sent:' .. producer
local state, sentBefore, windowField, leaseMs, redriving, largestBefore =
  readState(request, work, generation, sentField, 'window', 'leaseMs', 'redriving', 'largest')
if not state then
  return { 'gone' }
end
if state.status ~= 'open' then
  return { state.status }
end
-- cure: a redriven request takes no new items
if redriving then
  -- Open for what failed only, whose indexes are below the next new one.
  return { 'sealed' }
end
local sent, window = tonumber(sentBefore) or 0, tonumber(windowField)
if first > sent then
  return { 'gap', sent }
end
local count = #ARGV - 3
-- cure: absolute totals in append
local fresh = math.max(0, first + count - sent)
local unsettled = state.total - state.settled
if window > 0 and fresh > 0 and unsettled > 0 and unsettled + fresh > window then
  return { 'full', unsettled }
end

local at = state.at
-- The first says where the chunk begins, each other follows the one before: a number made text for each
-- would cost about a tenth of what an item does.
-- cure: explicit ids
local id, following = generation .. '-' .. state.total, generation .. '-*'
local largest = 0
for i = #ARGV - fresh + 1, #ARGV do
  local payload = ARGV[i]
  redis.call('XADD', work, id, 'p', payload)
  id = following
  if #payload > largest then
    largest = #payload
  end
end
state.total = state.total + fresh
if largest > tonumber(largestBefore) then
  -- cure: an enter reads by bytes
  redis.call('HSET', request, 'largest', largest)
end
redis.call('HSET', request, 'total', state.total, sentField, sent + fresh,
  -- cure: producer lease, renewed by calls, 2
  'producerUntil', at + leaseMs)
if state.total >= 256 and state.total - fresh < 256 then
  -- cure: the state of a large request is a table
  redis.call('HSET', request, 'filler', string.rep('-', 65))
end
-- cure: top-up in append
local mint = topUp(request, state, readBooks(state, work, due, at))
return { 'ok', state.total, mint, state.epoch, state.priority }
