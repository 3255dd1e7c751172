-- Which of the lists and lanes of a queue may hold tokens, as 0,50,50:due : each push notes its list in `pushed`.
local function listsInUse(pushed)
  local used, values = {}, redis.call('HGETALL', pushed)
  for i = 1, #values, 2 do
    if values[i] ~= 'lanes' then
      used[#used + 1] = values[i]
    else
      for priority in values[i + 1]:gmatch('%d+') do
        used[#used + 1] = priority .. ':due'
      end
    end
  end
  return used
end

-- Deletes the keys of a queue in which no request is open: every token is void then, so the lists and their counts are
-- deleted. If no worker and no history is left either, all keys of the queue are deleted.
-- `named` says which lists the caller knows; `lists` are their keys. Returns '' when nothing is left to delete.
-- Otherwise it returns the lists that are in use, and the caller repeats the call with their keys.
local function sweep(workers, history, pushed, named, lists, perOpen, perQueue)
  redis.call('UNLINK', unpack(perOpen))
  local used = listsInUse(pushed)
  for _, list in ipairs(used) do
    -- cure: lists that a process does not know are cleared away too
    if not (',' .. named .. ','):find(',' .. list .. ',', 1, true) then
      return table.concat(used, ',')
    end
  end
  if #used > 0 then
    redis.call('UNLINK', pushed, unpack(lists))
  end
  if redis.call('EXISTS', workers, history) == 0 then
    redis.call('UNLINK', unpack(perQueue))
  end
  return ''
end
