--- @needs digits
-- Ends of requests, several in one call: what each changes is decided in the order in which they are named, as though
-- each came in a call of its own. What is the same for all is written once.

-- What one end changes. `finished`: its id was open under its generation; `opened`: the generation under which the id
-- was open, or false. `found.ended` is id -> time of its end, `found.spent` is 'id~generation' -> when to unlink what it
-- keeps; false: it is to be forgotten.
local function noteEnd(found, history, at, id, generation, outcome, spentAt, opened, finished)
  local forget = outcome == 'dropped' or outcome == 'gone'
  local later = opened and tonumber(opened) > tonumber(generation)
  if outcome == 'dropped' and (finished or not opened or
    -- cure: a dropped generation is forgotten whatever is open
    later) then
    -- Also forgets the end of an earlier generation, as a repeat of this call would. A later generation that is open has
    -- no end yet; if its intent comes to nothing, no other call forgets the end of this one.
    found.ended[id] = false
    found.spent[id .. '~' .. generation] = false
  elseif finished and not forget then
    found.ended[id] = at
  end
  if spentAt > 0 and not forget then
    local remembered = found.ended[id]
    if remembered == nil then
      remembered = redis.call('ZSCORE', history, id)
    end
    -- A call that comes too late to finish the request answers the same. Of a request dropped since there is no outcome.
    if remembered then
      found.spent[id .. '~' .. generation] = spentAt
    end
  end
end

-- Reads the ends of a call, four texts for each; `at` as text. Returns what they change (`noteEnd`), and
--   finished  ids that were open under the generation that ended
--   outcomes  outcome -> how many of these
--   newest    the latest of their generations
local function readEnds(open, history, ends, at)
  local ids, openNow = {}, {}
  for i = 1, #ends, 4 do
    ids[#ids + 1] = ends[i]
  end
  for i, known in ipairs(redis.call('HMGET', open, unpack(ids))) do
    openNow[ids[i]] = known
  end
  local found = { finished = {}, outcomes = {}, newest = 0, ended = {}, spent = {} }
  for i, id in ipairs(ids) do
    local generation, outcome, spentAt = ends[4 * i - 2], ends[4 * i - 1], tonumber(ends[4 * i])
    local opened = openNow[id]
    local finished = opened and opened == --[[cure: generation on finish]] generation
    if finished then
      -- cure: ends of one call count in their order
      openNow[id] = false
      found.finished[#found.finished + 1] = id
      found.outcomes[outcome] = (found.outcomes[outcome] or 0) + 1
      found.newest = math.max(found.newest, tonumber(generation))
    end
    noteEnd(found, history, at, id, generation, outcome, spentAt, opened, finished)
  end
  return found
end

-- Counts what ended. Returns whether the history is to be shortened: once in 64 ends of one outcome.
local function countEnds(counters, found)
  local shorten = false
  for outcome, count in pairs(found.outcomes) do
    local counted = redis.call('HINCRBY', counters, outcome, count)
    shorten = shorten or math.floor(counted / 64) > math.floor((counted - count) / 64)
  end
  -- The next generation of each id is greater.
  if found.newest >= (tonumber(redis.call('HGET', counters, 'generation')) or 0) then
    -- cure: the end of a generation makes the next one greater
    redis.call('HSET', counters, 'generation', digits(found.newest + 1))
  end
  return shorten
end

-- Splits a table of values: the arguments of a ZADD, and the members whose value is false.
local function splitValues(values)
  local set, removed = {}, {}
  for member, value in pairs(values) do
    if value then
      set[#set + 1] = value
      set[#set + 1] = member
    else
      removed[#removed + 1] = member
    end
  end
  return set, removed
end

-- Remembers when requests ended, `max` of them and some more, each for `forMs`.
local function noteHistory(history, ended, at, forMs, max, shorten)
  local set, removed = splitValues(ended)
  if #removed > 0 then
    redis.call('ZREM', history, unpack(removed))
  end
  if #set > 0 then
    redis.call('ZADD', history, unpack(set))
    redis.call('PEXPIRE', history, digits(forMs))
  end
  if shorten then
    redis.call('ZREMRANGEBYSCORE', history, '-inf', at - forMs)
    -- cure: the history of a queue is bounded
    redis.call('ZREMRANGEBYRANK', history, 0, -max - 1)
  end
end

-- Notes what is to be unlinked, and when.
local function noteSpent(spent, times, at)
  local set, removed = splitValues(times)
  if #removed > 0 then
    redis.call('ZREM', spent, unpack(removed))
  end
  if #set > 0 then
    -- cure: large keys are unlinked before they expire, 3
    redis.call('ZADD', spent, unpack(set))
    for i = 1, #set, 2 do
      local leftMs = math.max(1, set[i] - at) + 600000
      redis.call('PEXPIRE', spent, leftMs, 'NX')
      redis.call('PEXPIRE', spent, leftMs, 'GT')
    end
  end
end
