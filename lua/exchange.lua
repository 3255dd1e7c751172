--- Returns the tokens of a request that a worker left and takes the next ones, in one call.
--
-- KEYS
--   open      hash  id -> generation
--   pushed    hash  priority -> tokens ever pushed to its list
--   lists...  list  those that are served before the request's, in their order, lanes that are known to be
--                   used among them; as the last the request's, of one that is expedited its lane
-- ARGV
--   id          string   of the request that was left
--   generation  int      of the request
--   epoch       int      in which the tokens were counted
--   count       int      how many to return, 1 or more
--   priority    int      of the request's list
--   take        int      how many to take at most, 1 or more
--   due         int?     when it was due, of one that is expedited; left out: it is not
--   channel     string?  shard channel of the queue's workers, with due
-- REPLIES
--   {'exchanged', tokens...: text}  what was taken, perhaps nothing; what was returned may be among it
--   {'closed', tokens...: text}   the same, and the id is not open under this generation: nothing was returned
-- REPEAT  returns and takes again: surplus tokens die at enter, lost ones are found by epochs
-- FLAGS allow-oom

--- @include lane, push

local open, pushed, lists = KEYS[1], KEYS[2], { unpack(KEYS, 3) }
local id, generation, epoch, count, priority, take =
  ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5], ARGV[6]
local due, channel = ARGV[7], ARGV[8]

local verdict =
  pushTokens(open, pushed, lists[#lists], priority, id, generation, epoch, count, due, channel)
local args = { #lists, unpack(lists) }
args[#args + 1] = 'RIGHT'
args[#args + 1] = 'COUNT'
args[#args + 1] = take
local popped = redis.call('LMPOP', unpack(args))
-- cure: an exchange says that nothing was returned
verdict = verdict == 'pushed' and 'exchanged' or verdict
return { verdict, unpack(popped and popped[2] or {}) }
