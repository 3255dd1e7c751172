--- @needs digits, replace, exceeded, notice
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
-- something else to tell: the reader reads the stream.
-- `records`: their text, if the caller knows it.
local function fewResults(state, results, keeps, kept, retentionMs, records)
  local bytes = tonumber(kept)
  if keeps ~= 'keep' or not bytes or bytes > TOLD_BYTES or state.succeeded < state.total or
    -- cure: results that expire soon are read
    retentionMs < TOLD_FROM_MS then
    return ''
  end
  if records then
    return records
  end
  local texts = {}
  for _, record in ipairs(redis.call('XRANGE', results, '-', '+')) do
    -- cure: a message brings no record of a failure
    if #record[2] ~= 2 or record[2][1] ~= 'ok' then
      return ''
    end
    texts[#texts + 1] = recordText(record[1], record[2][2])
  end
  return table.concat(texts)
end

-- Completes the request if it is sealed (or being cancelled) and its last sub-request is settled:
-- the outcome is written first, published second; what only served the running request goes last,
-- because no key may be touched after its delete. `also`, of a usual end: `fields` to write with it, how many bytes of
-- `results` ('keep' or not) are `kept` by then, and the text of all `records`, if that is known. Returns the outcome, or
-- nil.
local function completeIfDone(request, state, at, channel, spent, also)
  local ending = state.status == 'sealed' or state.status == 'cancelling'
  if not ending or state.succeeded + state.failed + state.cancelled < state.total then
    return nil
  end
  -- Each field costs a search in the state. At a usual end nothing has failed, and nothing ended it early.
  local v = redis.call('HMGET', request, 'retentionMs', 'createUntil', 'createdAt', 'notify',
    unpack(also and {} or { 'endReason', 'toleratedFailures', 'results', 'kept' }))
  local retention, endReason = v[1], v[5]
  local results = also and also.results or v[7]
  local kept =
    -- cure: a usual end tells what it keeps
    also and also.kept or v[8]
  local outcome = 'succeeded'
  -- cure: the deadline is on the agenda, 3
  if endReason == 'deadline' or endReason == 'failures' then
    outcome = 'failed'
  -- A redrive of failed sub-requests does not undo what an earlier generation had cancelled.
  elseif state.status == 'cancelling' or
    -- cure: what an earlier generation cancelled stays cancelled
    state.cancelled > 0 then
    outcome = 'cancelled'
  elseif state.failed > 0 and exceeded(state, v[6]) then
    outcome = 'failed'
  end
  -- cure: completion state before publish, 2
  redis.call('HSET', request, 'status', 'complete', 'outcome', outcome, 'completedAt', digits(at),
    'granted', '0', 'out', '0', 'outBefore', '0', unpack(also and also.fields or {}))
  local retentionMs = retention
  if keepsMuch(request, state, results, kept) then
    state.spentAt = at + retentionMs
    -- cure: large keys are unlinked before they expire
    redis.call('HSET', request, 'spentAt', digits(state.spentAt))
    -- cure: large keys are unlinked before they expire, 2
    retentionMs = digits(retentionMs + SPENT_GRACE_MS)
  end
  for _, key in ipairs(spent.kept) do
    redis.call('PEXPIRE', key, retentionMs)
  end
  redis.call('PEXPIRE', request, retentionMs)
  local records = v[4] and fewResults(state, spent.kept[#spent.kept], results, kept, tonumber(retention),
    also and also.records)
  local notice = table.concat({ state.generation, outcome, digits(state.total), digits(state.succeeded),
    digits(state.failed), digits(state.cancelled), endReason or '-' }, ' ')
  publishNotice(notice, channel, v[4], records)
  local createUntil, createdAt = tonumber(v[2]), tonumber(v[3])
  local work, gone = spent.keys[1], spent.gone or spent.keys[#spent.keys]
  for i = 2, #spent.keys do
    -- In a hash slot on its way to another server, one that just became empty may not be touched.
    redis.pcall('UNLINK', spent.keys[i])
  end
  if not rememberLife(work, state, at, tonumber(retention), createdAt, createUntil, gone) then
    redis.pcall('UNLINK', work)
  end
  return outcome
end
