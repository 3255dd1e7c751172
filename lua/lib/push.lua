--- @needs lane
-- Pushes tokens of an open request to the left of its priority list and counts them: head(list) =
-- pushed - length is then exactly how many were ever popped. Tokens of an ended generation are dropped here.
-- With `due`, `list` is the lane of the priority, and the tokens go to their place in it.
local function pushTokens(open, pushed, list, priority, id, generation, epoch, count, due, channel)
  if redis.call('HGET', open, id) ~= generation then
    return 'closed'
  end
  if count > 0 then
    local token = id .. '~' .. generation .. '~' .. epoch
    if due then
      noteLane(pushed, priority, channel)
      pushIntoLane(list, token .. '~' .. due, count)
      return 'pushed'
    end
    local tokens = {}
    for i = 1, count do
      tokens[i] = token
    end
    redis.call('HINCRBY', pushed, priority, count)
    redis.call('LPUSH', list, unpack(tokens))
  end
  return 'pushed'
end
