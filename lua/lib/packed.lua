-- The sub-requests of a small request are packed into one string until a worker comes to it: of each its length, a colon
-- and its payload. A stream takes five kilobytes, however little is in it (docs/decisions/0049-small-submissions.md).

-- Whether this is the reply of a string to a command for streams.
local function isPacked(reply)
  return reply.err ~= nil and reply.err:sub(1, 9) == 'WRONGTYPE'
end
