--- @needs replace, exceeded
-- A create of this life may be on its way for longer than its retention lasts, and would bring it into
-- being once more, with nobody to look after it. Until it is too old to be heard, the stream stays, empty
-- and without its group, and says by its last id which life it was. Everybody but `create` sees nothing.
local function rememberLife(work, state, at, retentionMs, createdAt, createUntil, gone)
  -- Where the clock went back since, it is believed for no longer than it was meant.
  local left = math.min((createUntil or 0) - at, (createUntil or 0) - (createdAt or 0)) + 1000
  if left <= retentionMs then
    return false
  end
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

-- What is kept until the retention is over is freed at its expiry by the server's one thread, unless it was told
-- otherwise: a second for half a million failures. So of a request that keeps much, `spentAt` says when the
-- agenda is to have it unlinked, and the keys expire only if nobody did. The state of one that hundreds of workers
-- held is large itself.
local SPENT_GRACE_MS = 60000
local function keepsMuch(request, state, results, kept)
  return state.failed >= 1000 or (results == 'keep' and state.succeeded >= 10000)
    or (tonumber(kept) or 0) >= 16777216 or redis.call('HLEN', request) >= 2000
end

-- Completes the request if it is sealed (or being cancelled) and its last sub-request is settled:
-- the outcome is written first, published second; what only served the running request goes last,
-- because no key may be touched after its delete. Returns the outcome, or nil.
local function completeIfDone(request, state, at, channel, spent)
  local ending = state.status == 'sealed' or state.status == 'cancelling'
  if not ending or state.succeeded + state.failed + state.cancelled < state.total then
    return nil
  end
  local v = redis.call('HMGET', request, 'toleratedFailures', 'retentionMs', 'createUntil', 'endReason', 'createdAt',
    'results', 'kept')
  local outcome = 'succeeded'
  if v[4] == 'deadline' or v[4] == 'failures' then
    outcome = 'failed'
  -- What an earlier life had cancelled, a redrive of the failed ones does not make good.
  elseif state.status == 'cancelling' or state.cancelled > 0 then
    outcome = 'cancelled'
  elseif exceeded(state, v[1]) then
    outcome = 'failed'
  end
  redis.call('HSET', request, 'status', 'complete', 'outcome', outcome, 'completedAt', at,
    'granted', 0, 'out', 0, 'outBefore', 0)
  local retentionMs = tonumber(v[2])
  if keepsMuch(request, state, v[6], v[7]) then
    state.spentAt = at + retentionMs
    redis.call('HSET', request, 'spentAt', state.spentAt)
    retentionMs = retentionMs + SPENT_GRACE_MS
  end
  for _, key in ipairs(spent.kept) do
    redis.call('PEXPIRE', key, retentionMs)
  end
  redis.call('PEXPIRE', request, retentionMs)
  -- A user without the right to publish completes all the same: waiters read from time to time.
  local notice = { state.generation, outcome, state.total, state.succeeded, state.failed, state.cancelled, v[4] or '-' }
  redis.pcall('SPUBLISH', channel, table.concat(notice, ' '))
  local createdAt, createUntil = tonumber(v[5]), tonumber(v[3])
  local work, gone = spent.keys[1], spent.keys[#spent.keys]
  for i = 2, #spent.keys do
    -- In a hash slot on its way to another server, one that just became empty may not be touched.
    redis.pcall('UNLINK', spent.keys[i])
  end
  if not rememberLife(work, state, at, tonumber(v[2]), createdAt, createUntil, gone) then
    redis.pcall('UNLINK', work)
  end
  return outcome
end
