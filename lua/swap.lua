--- Returns the tokens of a request that a worker left and takes the next ones, in one call.
--
-- KEYS
--   open      hash  id -> generation
--   pushed    hash  priority -> tokens ever pushed to its list
--   lists...  list  all lists in the order in which they are served, lanes that are known to be used among them
-- ARGV
--   id          string  of the request that was left
--   generation  int     of the request
--   epoch       int     in which the tokens were counted
--   count       int     how many to return
--   priority    int     of the request's list
--   own         int     which of the lists it is, from 1; of one that is expedited, its lane
--   take        int     how many to take at most, 1 or more
--   due         int     when it was due, of one that is expedited; left out: it is not
--   channel     string  shard channel of the queue's workers, with due
-- REPLIES
--   {'swapped', token, …}  what was taken, perhaps nothing; what was returned may be among it
-- REPEAT  returns and takes again: surplus tokens die at enter, lost ones are found by epochs
-- FLAGS allow-oom

--- @include lane, push

local open, pushed, lists = KEYS[1], KEYS[2], { unpack(KEYS, 3) }
local id, generation, epoch, count, priority, own, take =
  ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5], tonumber(ARGV[6]), ARGV[7]
local due, channel = ARGV[8], ARGV[9]

pushTokens(open, pushed, lists[own], priority, id, generation, epoch, count, due, channel)
local args = { #lists, unpack(lists) }
args[#args + 1] = 'RIGHT'
args[#args + 1] = 'COUNT'
args[#args + 1] = take
local popped = redis.call('LMPOP', unpack(args))
return { 'swapped', unpack(popped and popped[2] or {}) }
