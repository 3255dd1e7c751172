-- Calls a command with any number of arguments, 1,000 at a time: Lua unpacks no more than some thousand.
local function someAtATime(command, key, args)
  for i = 1, #args, 1000 do
    redis.call(command, key, unpack(args, i, math.min(i + 999, #args)))
  end
end
