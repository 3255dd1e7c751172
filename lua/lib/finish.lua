--- @needs digits, sweep, parked, ends
-- Removes requests that ended from the queue side, of a queue whose keys are given as `finish` names them. `ends`: four
-- texts for each, as in `finish`. Returns which lists are left to be cleared away, and how many requests were open under
-- their generation.
local function finishAll(at, ends, historyMs, historyMax, named, lists, open, agenda, wait, marks, parked, parkedByTask,
    pushed, counters, history, errors, workers, workerInfo, series, spent)
  local found = readEnds(open, history, ends, digits(at))
  local finished = found.finished
  local shorten = false
  if #finished > 0 then
    redis.call('HDEL', open, unpack(finished))
    shorten = countEnds(counters, found)
  end
  noteHistory(history, found.ended, at, historyMs, historyMax, shorten)
  noteSpent(spent, found.spent, at)
  if redis.call('EXISTS', open) == 0 then
    -- An unused queue forgets its counts.
    redis.call('PEXPIRE', counters, digits(historyMs))
    local perOpen, perQueue = { agenda, wait, marks, parked, parkedByTask }, { counters, errors, workerInfo, series }
    return sweep(workers, history, pushed, named, lists, perOpen, perQueue), #finished
  end
  if #finished > 0 then
    redis.call('HDEL', marks, unpack(finished))
    local tended = {}
    for i, id in ipairs(finished) do
      tended[2 * i - 1], tended[2 * i] = id, id .. '~'
    end
    redis.call('ZREM', agenda, unpack(tended))
    redis.call('ZREM', wait, unpack(finished))
    noteUnpark(parked, parkedByTask, finished)
  end
  return '', #finished
end
