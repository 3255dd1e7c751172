--- @needs digits, record-id
--- @host ARGV
-- The usual settle: nothing but successes, all of them the worker's, which keeps its permits. It takes few commands, and
-- does not even load the libraries of the others (docs/decisions/0047-a-slim-settle.md).

-- Acknowledges the entries in the arguments from `first` to `last`. Returns how many were pending.
local function acknowledge(work, first, last)
  if last < first then
    return 0
  end
  return redis.call('XACK', work, 'workers', unpack(ARGV, first, last))
end

-- Whether nothing follows from the successes, which `state` counts already, but their record.
local function isUsual(state, values, due, progress)
  return
    -- cure: a long record is not usual
    #values <= 65536 and
    -- cure: what completes a request is not usual
    (state.status == 'open' or state.settled < state.total) and
    -- cure: what waits or was reported is not usual
    redis.call('EXISTS', due, progress) == 0
end

-- Writes the counts, the cost, the lease and the record. `kept`: how many bytes the settles before wrote.
local function writeUsual(request, state, worker, op, leaseEnds, kept, results, values, cost)
  if not state.keepResults then
    values = ''
  end
  redis.call('HSET', request, 'succeeded', digits(state.succeeded), 'kept', digits(kept + #values),
    'cost', cost, 'lease:' .. worker, digits(leaseEnds), 'op:' .. worker, digits(op))
  if values ~= '' then
    redis.call('XADD', results, recordId(state), 'ok', values)
  end
end
