-- The sub-requests of a small request are packed into one string: of each its length, a colon and its payload. A stream
-- takes five kilobytes, however little is in it (docs/decisions/0049-small-submissions.md), and more commands. They stay
-- packed until a worker reads only some of them, or until something happens to them other than that the worker which has
-- read them settles all as succeeded (docs/decisions/0066-packed-until-settled.md).

-- Whether they are. Where somebody has permits, one worker has read them all, and nobody else has a permit.
local function isPacked(state, work)
  return state.total <= 128 and state.settled == 0 and redis.call('TYPE', work).ok == 'string'
end

-- The payloads in such a string, in the order of their indexes.
local function payloadsIn(text)
  local from, payloads = 1, {}
  while from <= #text do
    local colon = text:find(':', from, true)
    local to = colon + tonumber(text:sub(from, colon - 1))
    payloads[#payloads + 1] = text:sub(colon + 1, to)
    from = to + 1
  end
  return payloads
end

local function packedIn(work)
  return payloadsIn(redis.call('GET', work))
end
