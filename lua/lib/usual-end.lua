--- @needs digits, record-id, notice, complete
-- The usual end: the last successes of a request, of which nothing else is left. What the settle counts and what the
-- completion says are one write, and what does not exist is not removed (docs/decisions/0050).

-- Whether these successes, which `state` counts already, are the last of all, and nothing was retried, returned,
-- reported or failed.
local function isUsualEnd(state, values, due, tries, progress, failed)
  return state.status == 'sealed' and state.failed == 0 and
    -- cure: only the last successes are a usual end
    state.settled == state.total and
    -- cure: a long record is not a usual end
    #values <= 65536 and
    -- cure: what is left of a sub-request is not a usual end
    redis.call('EXISTS', due, tries, progress, failed) == 0
end

-- Writes the record, and the counts with the completion. The worker keeps `keep` permits. `kept`: how many bytes
-- the settles before wrote · `isOnly`: whether this is the only record. A short one is a string (lib/only-record): a
-- stream of it would take five kilobytes for as long as it is kept. Returns the outcome.
local function endUsually(keys, state, worker, op, keep, leaseEnds, kept, isOnly, values, cost, channel)
  if not state.keepResults then
    values = ''
  end
  kept = kept + #values
  local fields = { 'succeeded', digits(state.succeeded), 'kept', digits(kept), 'op:' .. worker, digits(op), 'cost', cost }
  if keep == 0 then
    -- cure: a usual end leaves no permits
    redis.call('HDEL', keys.request, 'permits:' .. worker, 'lease:' .. worker, 'term:' .. worker, 'since:' .. worker)
  else
    fields[9], fields[10], fields[11], fields[12] = 'permits:' .. worker, digits(keep), 'lease:' .. worker, digits(leaseEnds)
  end
  local records
  if values ~= '' then
    local record = recordId(state)
    if
      -- cure: only the only record is a string
      isOnly and #values <= TOLD_BYTES then
      redis.call('SET', keys.results, record .. values)
    else
      redis.call('XADD', keys.results, record, 'ok', values)
    end
    records = isOnly and recordText(record, values) or nil
  end
  -- A failure is on record whatever is kept, also one that a redrive has moved since.
  local hasRecords = state.keepResults or
    -- cure: what a redriven request has on record expires
    state.moved > 0
  local spent = { kept = hasRecords and { keys.results } or {}, keys = { keys.work }, gone = keys.progress }
  local also = { fields = fields, kept = kept, results = state.keepResults and 'keep' or 'discard', records = records }
  return completeIfDone(keys.request, state, state.at, channel, spent, also)
end
