--- @needs compact, failed, cost, exceeded, complete
--- @host ARGV
-- The end of a compact request: the worker that has it settles all of its sub-requests in one call, and none is tried
-- again. It does what a settle of a hash and a stream does (lib/successes, lib/failures), and completes the request.

-- The outcomes that the arguments from `first` to `last` name, `successes` of them first (as in `settle`): how many there
-- are, and the failures: index, error, … Returns nil if one is no end of its sub-request, or if one is named twice.
local function endsIn(c, first, last, successes)
  local seen, count, failures, cut = {}, 0, {}, #c[GENERATION] + 2
  local function isNew(index)
    local known = seen[index]
    seen[index], count = true, count + 1
    return
      -- cure: each sub-request of a compact request ends once
      not known and tonumber(index) < c[TOTAL]
  end
  for i = first, first + successes - 1 do
    if not isNew(ARGV[i]:sub(cut)) then
      return nil
    end
  end
  for i = first + successes, last, 4 do
    local index, kind, failure, delayMs = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
    if not isNew(index) or kind ~= 'f' or
      -- cure: who may try again is no end of a compact request
      c[ATTEMPTS] ~= '1' and delayMs ~= '-1' then
      return nil
    end
    failures[#failures + 1], failures[#failures + 2] = index, failure
  end
  return count, failures
end

-- Notes in the state of a request that too many of its sub-requests failed, if that ends it early.
local function noteExceeded(c, state)
  local value = otherFieldsOf(c)
  state.toleratedFailures = value.toleratedFailures
  if value.onExceeded == 'cancel' and exceeded(state, value.toleratedFailures) then
    state.endReason = 'failures'
    local others = cmsgpack.unpack(c[OTHERS])
    others[#others + 1], others[#others + 2] = 'endReason', 'failures'
    c[OTHERS] = cmsgpack.pack(others)
  end
end

-- Completes it, if `worker` has it. `values`, `costs`: as in `settle`; its other outcomes are the
-- arguments from `first` to `last`. Returns the outcome. Returns nil and writes nothing if the request needs its full form.
local function settleCompact(request, failed, generation, worker, successes, values, costs, channel, at, first, last)
  local c = readCompact(request)
  if c[GENERATION] ~= generation then
    return nil
  elseif c[COMPLETED_AT] > 0 then
    return c[OUTCOME]
  end
  if
    -- cure: a compact request is settled by the worker that has it
    c[WORKER] ~= worker or
    -- cure: a long record is not usual, of a compact request
    #values > COMPACT_BYTES then
    return nil
  end
  local count, failures = endsIn(c, first, last, successes)
  if
    -- cure: a compact request is settled as a whole
    count ~= c[TOTAL] then
    return nil
  end
  local state = {
    compact = c, generation = generation, status = 'sealed', total = count, succeeded = successes,
    failed = #failures / 2, cancelled = 0, kept = 0,
  }
  local record = {}
  if successes > 0 and c[RESULTS] == 'keep' then
    record[1], record[2], state.kept = 'ok', values, #values
  end
  local payloads = #failures > 0 and payloadsOf(c)
  for i = 1, #failures, 2 do
    local index, failure = failures[i], failures[i + 1]
    noteFailed(failed, state, index, failure, payloads[index + 1], 1, 0)
    record[#record + 1], record[#record + 2] = '!' .. index, '1'
  end
  if #failures > 0 then
    noteExceeded(c, state)
  end
  c[OUT], c[OUT_BEFORE], c[WORKER], c[PERMITS], c[OP], c[LEASE_ENDS], c[LEASE_MS], c[SINCE] = 0, 0, '', 0, 0, 0, 0, 0
  c[PAYLOADS], c[KEPT], c[FAILED], c[RECORD] = costWith('', costs), state.kept, state.failed, record
  return completeIfDone(request, state, at, channel, { kept = #failures > 0 and { failed } or {} })
end
