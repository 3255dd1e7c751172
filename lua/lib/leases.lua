--- @needs terms, some-at-a-time
-- What the state says of the workers: for each kind of field, worker -> value.
local function workersIn(fields)
  local of = { permits = {}, lease = {}, term = {}, op = {}, crashed = {}, cause = {} }
  for i = 1, #fields, 2 do
    local kind, worker = fields[i]:match('^(%a+):(.+)$')
    if of[kind] then
      of[kind][worker] = fields[i + 1]
    end
  end
  for worker, value in pairs(of.cause) do
    of.cause[worker] = { at = tonumber(value:match('^%d+')), known = value:match(' (.+)$') }
  end
  return of
end

-- Removes the numbers of calls of workers without a permit at the second tend that meets them, and the causes that are
-- of no use any more. `old`: fields that go already.
local function forgetWorkers(request, of, ended, old)
  local marked = {}
  for worker, op in pairs(of.op) do
    if not of.permits[worker] and op:sub(-1) == '!' then
      old[#old + 1] = 'op:' .. worker
    elseif not of.permits[worker] then
      marked[#marked + 1] = 'op:' .. worker
      marked[#marked + 1] = op .. '!'
    end
  end
  for worker in pairs(of.cause) do
    if not of.permits[worker] and not ended[worker] then
      old[#old + 1] = 'cause:' .. worker
    end
  end
  someAtATime('HSET', request, marked)
  someAtATime('HDEL', request, old)
end

-- Withdraws the permits of workers whose lease has ended, at most 250 a call. Returns the time at which the next lease
-- ends, whose lease ended (now, or at an earlier tend that could not take everything back), who has permits, and
-- what is known of why a lease ended.
local function withdrawExpired(request, state, at, grace, fields)
  local of = workersIn(fields)
  local permits, causes, ended, old = of.permits, of.cause, {}, {}
  for worker in pairs(of.crashed) do
    if permits[worker] then
      -- It came back, and owns again what it still has.
      redis.call('HDEL', request, 'crashed:' .. worker)
    else
      ended[worker] = true
    end
  end
  local nextLease, room = math.huge, 250
  for worker, value in pairs(of.lease) do
    local field, written, term = 'lease:' .. worker, tonumber(value), tonumber(of.term[worker])
    if causes[worker] and
      -- cure: a lease that is given its term again is not renewed
      written % 1 == 0 and
      -- cure: a cause counts until the next renewal
      causes[worker].at < written - (term or 0) then
      causes[worker] = nil
      old[#old + 1] = 'cause:' .. worker
    end
    local ends = leaseEnds(request, field,
      -- cure: a lease is not believed beyond its length
      notBeyond(request, field, written, at, term), term, at, grace)
    -- cure: a tend finds so many leases ended
    if ends <= at and room == 0 then
      -- cure: a tend finds so many leases ended, 2
      nextLease = at + 1
    elseif ends <= at then
      room = room - 1
      state.granted = state.granted - (tonumber(permits[worker]) or 0)
      permits[worker] = nil
      -- cure: the last crash counts only in isolation, 2
      ended[worker] = true
      for _, kind in ipairs({ 'permits:', 'lease:', 'term:', 'since:' }) do
        old[#old + 1] = kind .. worker
      end
    else
      nextLease = math.min(nextLease, ends)
    end
  end
  if room < 250 then
    redis.call('HSET', request, 'granted', state.granted)
  end
  forgetWorkers(request, of, ended, old)
  return nextLease, ended, permits, causes
end
