--- @needs digits, compact, replace, exceeded, notice
-- A create of this generation may be on its way for longer than the retention lasts. It would create the request once
-- more, and nothing would tend it. Until that create would be refused as too old, the stream stays, empty and without
-- its group: its last id says which generation it was. Only `create` reads that.
local function rememberLife(work, state, at, retentionMs, createdAt, createUntil, gone)
  -- Where the clock went back since, it is believed for no longer than it was meant.
  local left = math.min((createUntil or 0) - at, (createUntil or 0) - (createdAt or 0)) + 1000
  -- cure: a generation is remembered until its create is too old, 2
  if left <= retentionMs then
    return false
  end
  -- cure: a generation is remembered until its create is too old, 3
  local last = string.format('%s-%d', state.generation, state.total)
  if mayWriteAgain(gone) then
    -- What is unlinked is freed beside the server's work, what is trimmed in the midst of it.
    redis.call('UNLINK', work)
    redis.call('XADD', work, 'MAXLEN', 0, last, 'p', '')
  else
    redis.call('XTRIM', work, 'MAXLEN', 0)
    redis.call('XGROUP', 'DESTROY', work, 'workers')
    redis.call('XSETID', work, last)
  end
  redis.call('PEXPIRE', work, left)
  return true
end

-- Data that expires is freed by the server's one thread, unless it is configured otherwise: half a million failures take
-- a second. So for a request that keeps much, `spentAt` says when the agenda has it unlinked, and the keys expire
-- only if that did not happen. The state of a request with hundreds of workers is large itself.
local SPENT_GRACE_MS = 60000
local function keepsMuch(request, state, results, kept)
  return state.failed >= 1000 or (results == 'keep' and state.succeeded >= 10000)
    or (tonumber(kept) or 0) >= 16777216 or
      -- cure: a large state is unlinked before it expires
      redis.call('HLEN', request) >= 2000
end

-- The records of a request of which everything succeeded and little is kept, as text. Returns '' when there is more or
-- something else to tell: the reader reads them.
local function fewResults(state, results, keeps, kept, retentionMs)
  local bytes = tonumber(kept)
  if keeps ~= 'keep' or not bytes or bytes > TOLD_BYTES or state.succeeded < state.total or
    -- cure: results that expire soon are read
    tonumber(retentionMs) < TOLD_FROM_MS then
    return ''
  end
  local c, texts = state.compact, {}
  for _, record in ipairs(c and { { positionOf(c), c[RECORD] } } or redis.call('XRANGE', results, '-', '+')) do
    -- cure: a message brings no record of a failure
    if #record[2] ~= 2 or record[2][1] ~= 'ok' then
      return ''
    end
    texts[#texts + 1] = recordText(record[1], record[2][2])
  end
  return table.concat(texts)
end

local function outcomeOf(state, endReason, toleratedFailures)
  -- cure: the deadline is on the agenda, 3
  if endReason == 'deadline' or endReason == 'failures' then
    return 'failed'
  -- A redrive of failed sub-requests does not undo what an earlier generation had cancelled.
  elseif state.status == 'cancelling' or
    -- cure: what an earlier generation cancelled stays cancelled
    state.cancelled > 0 then
    return 'cancelled'
  elseif state.failed > 0 and exceeded(state, toleratedFailures) then
    return 'failed'
  end
  return 'succeeded'
end

-- Writes the end into the state, and when that expires. Returns for how long the records are kept.
local function writeEnd(request, state, outcome, at, retentionMs, results, kept)
  local c = state.compact
  if c then
    c[COMPLETED_AT], c[OUTCOME] = at, outcome
    redis.call('SET', request, cmsgpack.pack(c), 'PX', retentionMs)
    return retentionMs
  end
  redis.call('HSET', request, 'status', 'complete', 'outcome', outcome, 'completedAt', digits(at),
    'granted', '0', 'out', '0', 'outBefore', '0')
  if keepsMuch(request, state, results, kept) then
    state.spentAt = at + retentionMs
    -- cure: large keys are unlinked before they expire
    redis.call('HSET', request, 'spentAt', digits(state.spentAt))
    -- cure: large keys are unlinked before they expire, 2
    retentionMs = digits(retentionMs + SPENT_GRACE_MS)
  end
  redis.call('PEXPIRE', request, retentionMs)
  return retentionMs
end

-- Removes what only served the running request.
local function removeWork(state, at, spent, retentionMs, createdAt, createUntil)
  local work, gone = spent.keys[1], spent.keys[#spent.keys]
  for i = 2, #spent.keys do
    -- In a hash slot on its way to another server, one that just became empty may not be touched.
    redis.pcall('UNLINK', spent.keys[i])
  end
  if not rememberLife(work, state, at, tonumber(retentionMs), tonumber(createdAt), tonumber(createUntil), gone) then
    redis.pcall('UNLINK', work)
  end
end

-- The fields of the state that say how it ends.
local function factsOf(request, state)
  local c = state.compact
  if c then
    return digits(c[RETENTION_MS]), c[NOTIFY] ~= '' and c[NOTIFY], state.endReason, state.toleratedFailures, c[RESULTS], c[KEPT]
  end
  return unpack(redis.call('HMGET', request, 'retentionMs', 'notify', 'endReason', 'toleratedFailures', 'results', 'kept',
    'createUntil', 'createdAt'))
end

-- Completes the request if it is sealed (or being cancelled) and its last sub-request is settled: the outcome is written
-- first, published second; what only served the running request goes last, because no key may be touched after its
-- delete. `spent`: the keys that expire with the state (`kept`, the results last), and those that go (`keys`). Returns the
-- outcome, or nil.
local function completeIfDone(request, state, at, channel, spent)
  local ending = state.status == 'sealed' or state.status == 'cancelling'
  if not ending or state.succeeded + state.failed + state.cancelled < state.total then
    return nil
  end
  local retentionMs, notify, endReason, toleratedFailures, results, kept, createUntil, createdAt = factsOf(request, state)
  local outcome = outcomeOf(state, endReason, toleratedFailures)
  -- cure: completion state before publish, 2
  local keptMs = writeEnd(request, state, outcome, at, retentionMs, results, kept)
  for _, key in ipairs(spent.kept) do
    redis.call('PEXPIRE', key, keptMs)
  end
  local records = notify and fewResults(state, spent.kept[#spent.kept], results, kept, retentionMs)
  local notice = table.concat({ state.generation, outcome, digits(state.total), digits(state.succeeded),
    digits(state.failed), digits(state.cancelled), endReason or '-' }, ' ')
  publishNotice(notice, channel, notify, records)
  if not state.compact then
    removeWork(state, at, spent, retentionMs, createdAt, createUntil)
  end
  return outcome
end
