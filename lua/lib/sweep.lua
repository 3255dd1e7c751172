-- Deletes the keys of a queue that nobody needs any more. When no request is open, every token is void:
-- the lists and their counts go. When no worker and no history is left either, all keys of the queue go.
-- `lanes` says which lanes are among the keys. Returns '' when nothing is left to delete; otherwise the lanes
-- that are in use, and the caller calls again with those.
local function sweep(open, workers, history, pushed, lanes, perOpen, perQueue)
  if redis.call('EXISTS', open) == 1 then
    return ''
  end
  local used = redis.call('HGET', pushed, 'lanes') or ''
  if used ~= '' and used ~= lanes then
    return used
  end
  redis.call('UNLINK', pushed, unpack(perOpen))
  if redis.call('EXISTS', workers, history) == 0 then
    redis.call('UNLINK', unpack(perQueue))
  end
  return ''
end
