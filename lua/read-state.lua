--- Reads fields of the state of several requests, whichever form each has (lib/compact).
--
-- KEYS
--   requests...  any  state of each
-- ARGV
--   fields...  string  which
-- REPLIES of each request, in their order
--   {'read', values...: text}  in the order of the fields; '' for a missing one
-- REPEAT  reads only
-- FLAGS no-writes

--- @include now, digits, compact

local requests, fields = KEYS, ARGV

local function replyTo(request)
  local values = fieldsOf(request, fields)
  for i = 1, #values do
    values[i] = values[i] or ''
  end
  return { 'read', unpack(values) }
end

local replies = {}
for i, request in ipairs(requests) do
  replies[i] = replyTo(request)
end
return replies
