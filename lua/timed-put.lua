--- Puts keys into a timed set, or moves those that are there. A key that somebody else has taken stays taken: it
--- becomes due at its new time, but not before that lease is settled or has ended. `number` counts the puts of one
--- caller upwards, one at a time, so that a put that arrives twice or late does nothing.
--
-- KEYS
--   due     zset  key -> server time from which it may be taken
--   tasks   hash  key -> 'created failures payload', of keys that have a payload
--   leases  hash  key -> 'token at ends.ms after'
--   clock   hash  when a length was last given
--   caller  hash  what this caller was answered last; goes by itself
-- ARGV
--   number      int     of this call
--   rememberMs  int     how long the caller is remembered
--   channel     string  shard channel of those who wait for something to be due
--   entries...  (key string, token string, time value, payload string)
--                         token: of the caller's own lease, or '' · time: or '+ms' · payload: or ''
-- REPLIES
--   {'put'}   done
--   {'late'}  a later put of this caller was answered; nothing is done
-- REPEAT  'put'; nothing is put again, whatever became of it
-- FLAGS

--- @include now, timed-times, timed-entries

local due, tasks, leases, clock, caller = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local number, rememberMs, channel = tonumber(ARGV[1]), ARGV[2], ARGV[3]

local last = tonumber(redis.call('HGET', caller, 'put')) or 0
-- cure: the number of a put, 2
if number < last then
  return { 'late' }
end
-- cure: the number of a put
if number == last then
  return { 'put' }
end
local at, touched = now(), {}
for i = 4, #ARGV, 4 do
  local key, token, payload = ARGV[i], ARGV[i + 1], ARGV[i + 3]
  local entry, time = timedEntry(touched, due, leases, key, at), timedAt(ARGV[i + 2], at)
  local lease = entry.lease
  -- cure: a move beside the lease
  if lease and lease.ends > at and lease.token ~= token then
    -- cure: a move beside the lease, 3
    lease.after = timedText(time)
    -- cure: a move beside the lease, 2
    entry.due = math.max(time, lease.ends)
  else
    -- cure: a move of what was in a lease that ended
    entry.lease = false
    entry.due = time
  end
  if payload ~= '' then
    entry.task = table.concat({ timedNumber(at), 0, payload }, ' ')
  end
end
redis.call('HSET', caller, 'put', number)
redis.call('PEXPIRE', caller, --[[cure: the number of a put, the clock ahead]] rememberMs)
timedFlush(touched, { due = due, tasks = tasks, leases = leases, clock = clock }, channel, at)
return { 'put' }
