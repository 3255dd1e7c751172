-- What the last one to leave turns off. With no open request every token is a dead one, so the
-- lists and their counts go; with no worker and no history left either, the queue itself is gone.
-- `lanes` says which lanes are among the keys. Answers '' when nothing is left to do, else which lanes
-- are used: to be called again with those.
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
