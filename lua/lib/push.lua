-- Pushes tokens of an open request to the left of its priority list and counts them: head(list) =
-- pushed - length is then exactly how many were ever popped. Tokens of a dead life are dropped here.
local function pushTokens(open, pushed, list, priority, id, generation, epoch, count)
  if redis.call('HGET', open, id) ~= generation then
    return 'closed'
  end
  if count > 0 then
    local tokens = {}
    for i = 1, count do
      tokens[i] = id .. '~' .. generation .. '~' .. epoch
    end
    redis.call('HINCRBY', pushed, priority, count)
    redis.call('LPUSH', list, unpack(tokens))
  end
  return 'pushed'
end
