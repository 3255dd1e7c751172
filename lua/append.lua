--- Adds sub-requests to an open request and mints the tokens that they need.
--- A producer numbers its own items from 0; `first` makes a chunk that is sent twice, or overlaps
--- one that was, add nothing twice. Several producers may append: each has its own numbering, and
--- the index of a sub-request is the order in which the server took it.
--
-- KEYS
--   request   hash    state of the request
--   work      stream  its sub-requests
--   due       zset    delayed and returned sub-requests
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
--   {'gone'}             no such life
-- REPEAT  'ok' with what tokens are missing then; nothing is added
-- FLAGS

--- @include now, state, books, tokens

local request, work, due = KEYS[1], KEYS[2], KEYS[3]
local generation, producer, first = ARGV[1], ARGV[2], tonumber(ARGV[3])

local state = readState(request, generation)
if not state then
  return { 'gone' }
end
if state.status ~= 'open' then
  return { state.status }
end
local sentField = 'sent:' .. producer
local v = redis.call('HMGET', request, sentField, 'window', 'leaseMs', 'redriving', 'largest')
if v[4] then
  -- Open for what failed only, whose indexes are below the next new one.
  return { 'sealed' }
end
local sent, window = tonumber(v[1]) or 0, tonumber(v[2])
if first > sent then
  return { 'gap', sent }
end
local count = #ARGV - 3
local fresh = math.max(0, first + count - sent)
local unsettled = state.total - state.settled
if window > 0 and fresh > 0 and unsettled > 0 and unsettled + fresh > window then
  return { 'full', unsettled }
end

local at = state.at
-- The first says where the chunk begins, each other follows the one before: a number made text for each
-- would cost about a tenth of what an item does.
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
-- Without the field a producer of an earlier version made it, and may append too: nothing is known then.
if largest > (tonumber(v[5]) or math.huge) then
  redis.call('HSET', request, 'largest', largest)
end
redis.call('HSET', request, 'total', state.total, sentField, sent + fresh, 'producerUntil', at + v[3])
local mint = topUp(request, state, readBooks(state, work, due, at))
return { 'ok', state.total, mint, state.epoch, state.priority }
