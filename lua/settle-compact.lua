--- Completes compact requests (lib/compact), several in one call: the worker has read all sub-requests of each by one
--- enter, and all succeeded. The entries are not named: the caller vouches that each succeeded once.
--
-- KEYS
--   requests...  any  of each: its state, and its results
-- ARGV
--   worker       string  boot id of the worker process
--   settling...  (generation int, grantNo int, successes int, values value, channel string)  of each, as in `settle`
-- REPLIES
--   {'settled', complete: ints}  of each: 1: it is complete and has succeeded; 0: nothing was done, call `settle`, as for
--      values of more than 65,536 bytes
-- REPEAT  the same reply; 0 for a request that was expanded since: call `settle`
-- FLAGS allow-oom

--- @include now, digits, compact, notice, compact-settle

local requests = KEYS
local worker = ARGV[1]
local settling = { unpack(ARGV, 2) }

local at, complete = now(), {}
for i = 1, #requests / 2 do
  local request, results = requests[2 * i - 1], requests[2 * i]
  local generation, grantNo, successes, values, channel = unpack(settling, 5 * i - 4, 5 * i)
  complete[i] = isCompact(request) and settleCompact(request, results, generation, worker, tonumber(grantNo),
    countOf(successes), values, channel, at) and '1' or '0'
end
return { 'settled', table.concat(complete, ' ') }
