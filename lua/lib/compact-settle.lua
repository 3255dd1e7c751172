--- @needs digits, notice, compact, cost
-- The end of a compact request (lib/compact): one settle has all of its sub-requests, and all succeeded. It does what the
-- usual end (lib/usual-end) does.

-- Completes it, if `worker` has it since its call `grant`. `count`: how many sub-requests succeeded · `values`: their
-- results · `costs`: as in `settle`. Returns the number of its sub-requests once it is complete. Returns false and writes
-- nothing if the request needs its full form.
local function settleCompact(request, results, generation, worker, grant, count, values, costs, channel, at)
  local c = readCompact(request)
  if c[1] ~= generation then
    return false
  end
  if c[26] > 0 then
    return c[2]
  end
  local total, keeps, retentionMs, notify = c[2], c[16] == 'keep', c[17], c[18]
  local bytes = #values
  if
    -- cure: a compact request is settled by the worker that has it
    c[6] ~= worker or
    -- cure: number of the grant, of a compact request
    c[8] ~= grant or
    -- cure: a compact request is settled as a whole
    count ~= total or
    -- cure: a long record is not usual, of a compact request
    bytes > 65536 then
    return false
  end
  c[3], c[4], c[6], c[7], c[8], c[9], c[10], c[25], c[26], c[27] =
    0, 0, '', 0, 0, 0, 0, costWith('', cjson.decode(costs)), at, keeps and bytes or 0
  local keptMs, told = digits(retentionMs), ''
  if keeps then
    local record = generation .. '-' .. digits(total)
    -- A short one is a string (lib/only-record).
    if bytes <= TOLD_BYTES then
      redis.call('SET', results, record .. values, 'PX', keptMs)
    else
      redis.call('XADD', results, record, 'ok', values)
      redis.call('PEXPIRE', results, keptMs)
    end
    if bytes <= TOLD_BYTES and retentionMs >= TOLD_FROM_MS then
      told = recordText(record, values)
    end
  end
  redis.call('SET', request, cmsgpack.pack(c), 'PX', keptMs)
  local notice = table.concat({ generation, 'succeeded', digits(total), digits(total), '0 0 -' }, ' ')
  publishNotice(notice, channel, notify ~= '' and notify, told)
  return total
end
