-- The intent of this generation never became a request. Leaves a tombstone, so that a create that is still on its way
-- finds that out.
local function voidIntent(request, generation, tombstoneMs)
  local known, status, voided = unpack(redis.call('HMGET', request, 'generation', 'status', 'voided'))
  if not known or (tonumber(known) < tonumber(generation) and (status == 'void' or status == 'dropped')) then
    -- What was dropped stays dropped: otherwise a drop whose second half was cut off could not be taken up again.
    -- cure: tombstone for an intent without a request
    redis.call('HSET', request, 'generation', generation, 'status',
      -- cure: a dropped request stays dropped
      status or 'void')
    redis.call('PEXPIRE', request, tombstoneMs)
  elseif tonumber(known) < tonumber(generation) then
    redis.call('HSET', request, 'voided', math.max(tonumber(generation), tonumber(voided) or 0))
    -- cure: tombstone beyond the retention of the generation before
    redis.call('PEXPIRE', request, tombstoneMs, 'GT')
  end
end
