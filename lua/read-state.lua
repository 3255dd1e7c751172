--- Reads fields of the state of a request, whichever form it has (lib/compact).
--
-- KEYS
--   request  hash  state of the request
-- ARGV
--   fields...  string  which
-- REPLIES
--   {'read', values...: text}  in the order of the fields; '' for a missing one
-- REPEAT  reads only
-- FLAGS no-writes

--- @include now, digits, compact

local request = KEYS[1]
local fields = ARGV

local values
if isCompact(request) then
  values = someOfCompact(readCompact(request), fields)
else
  values = redis.call('HMGET', request, unpack(fields))
end
for i = 1, #values do
  values[i] = values[i] or ''
end
return { 'read', unpack(values) }
