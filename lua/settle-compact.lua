--- Completes compact requests (lib/compact) of one queue, several in one call: the worker has read all sub-requests of each
--- by one enter, and all succeeded. The entries are not named: the caller vouches that each succeeded once. If asked to, it
--- removes them from the queue side as `finish` does: where requests are compact, one server has both sides.
--
-- KEYS
--   open          hash  this and the next 13: as in `finish`
--   agenda        zset
--   wait          zset
--   marks         hash
--   parked        hash
--   parkedByTask  zset
--   pushed        hash
--   counters      hash
--   history       zset
--   errors        list
--   workers       zset
--   workerInfo    hash
--   series        list
--   spent         zset
--   others...     any   of each request: its state, and its results; then the token lists and lanes that `named` names
-- ARGV
--   worker       string  boot id of the worker process
--   finishes     int     1: those that are complete are finished, too · 0: `finish` is called for each
--   historyMs    int     this and the next two: as in `finish`
--   historyMax   int
--   named        string
--   settling...  (id string, generation int, grantNo int, successes int, values value, costs string, channel string)  of
--                        each request, as in `settle`
-- REPLIES
--   {'settled', left: text, complete: ints}
--      left: as in `finish`: call `finish` with the same ends and those lists · complete: of each request 1: it is complete
--      and has succeeded; 0: nothing was done, call `settle`, as for values of more than 65,536 bytes
-- REPEAT  the same `complete`, and finishes nothing more; 0 for a request that was expanded since: call `settle`
-- FLAGS allow-oom

--- @include now, digits, compact, notice, cost, compact-settle, sweep, parked, ends, finish

local open, agenda, wait, marks, parked, parkedByTask, pushed, counters, history, errors, workers, workerInfo =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11],
  KEYS[12]
local series, spent = KEYS[13], KEYS[14]
local others = { unpack(KEYS, 15) }
local worker, finishes, historyMs, historyMax, named =
  ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
local settling = { unpack(ARGV, 6) }

local at, count = now(), #settling / 7
local complete, ends = {}, {}
for i = 1, count do
  local request, results = others[2 * i - 1], others[2 * i]
  local id, generation, grantNo, successes, values, costs, channel = unpack(settling, 7 * i - 6, 7 * i)
  local settled = isCompact(request) and settleCompact(request, results, generation, worker, tonumber(grantNo),
    countOf(successes), values, costs, channel, at)
  complete[i] = settled and '1' or '0'
  if settled then
    ends[#ends + 1], ends[#ends + 2], ends[#ends + 3], ends[#ends + 4] = id, generation, 'succeeded', '0'
  end
end
local left = ''
if finishes == '1' and #ends > 0 then
  local lists = { unpack(others, 2 * count + 1) }
  left = finishAll(at, ends, historyMs, historyMax, named, lists, open, agenda, wait, marks, parked, parkedByTask,
    pushed, counters, history, errors, workers, workerInfo, series, spent)
end
return { 'settled', left, table.concat(complete, ' ') }
