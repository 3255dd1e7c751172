-- What the last one to leave turns off. With no open request every token is a dead one, so the
-- lists and their counts go; with no worker and no history left either, the queue itself is gone.
local function sweep(open, workers, history, perOpen, perQueue)
  if redis.call('EXISTS', open) == 1 then
    return
  end
  redis.call('UNLINK', unpack(perOpen))
  if redis.call('EXISTS', workers, history) == 0 then
    redis.call('UNLINK', unpack(perQueue))
  end
end
