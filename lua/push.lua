--- Puts tokens that the request side has minted into their priority list.
--
-- KEYS
--   open    hash  id -> generation
--   pushed  hash  priority -> tokens ever pushed to its list
--   list    list  tokens of one priority; pushed left, popped right; with due, its lane, by due time
-- ARGV
--   id          string   of the request
--   generation  int      of the request
--   epoch       int      in which the tokens were counted
--   count       int      how many; 0: only asks whether it is open
--   priority    int      of the list
--   due         int?     when it was due, of one that is expedited; left out: it is not
--   channel     string?  shard channel of the queue's workers, with due
-- REPLIES
--   {'pushed'}  done
--   {'closed'}  the id is not open under this generation; the tokens are dropped
-- REPEAT  pushes again: a surplus token dies at enter, so it need not be idempotent
-- FLAGS allow-oom

--- @include lane, push

local open, pushed, list = KEYS[1], KEYS[2], KEYS[3]
local id, generation, epoch, count, priority, due, channel =
  ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5], ARGV[6], ARGV[7]

local verdict = pushTokens(open, pushed, list, priority, id, generation, epoch, count, due, channel)
if verdict == 'pushed' and count == 0 then
  -- Written again, so that a WAIT behind it has a write to wait for that covers the intent.
  redis.call('HSET', open, id, generation)
end
return { verdict }
