--- Settles keys taken from a timed set, each by the lease under which it was taken: a caller that lost a key to
--- another changes nothing. A lease whose time has passed stays valid until another takes the key. `number` counts the
--- settles of one caller upwards, one at a time: a settle that arrives twice gets the same answer, one that arrives
--- late does nothing.
--
-- KEYS
--   due       zset    key -> server time from which it may be taken
--   tasks     hash    key -> 'created failures payload'
--   leases    hash    key -> 'token at ends.ms after'
--   clock     hash    when a length was last given
--   failures  stream  what was discarded, the oldest first
--   caller    hash    what this caller was answered last; goes by itself
-- ARGV
--   number        int     of this call
--   rememberMs    int     how long the caller is remembered
--   channel       string  shard channel of those who wait for something to be due
--   keepFailures  int     how many of the discarded are kept; the oldest go
--   outcomes...   (key string, token string, verb string, value value)
--                         done: the key goes, or is due at the time to which it was moved meanwhile
--                         retry: it is due at value (a time, or '+ms') with one failure more, or as it was put meanwhile
--                         back: it is due at its own time, as if it had not been taken
--                         discard: it goes to the failures, with value as its message
--                         keep: the lease ends value ms from now
--                         remove: removes the key, whichever taker has it; with token ''
-- REPLIES
--   {'settled', verdicts...: text}  for each key 'ok', or 'lost': nothing of it was changed
--   {'late'}                 a later settle of this caller was answered; nothing is done
-- REPEAT  the same verdicts; nothing is settled again
-- FLAGS allow-oom

--- @include now, timed-times, timed-entries

local due, tasks, leases, clock, failures, caller = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local number, rememberMs, channel, keepFailures = tonumber(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4])

local v = redis.call('HMGET', caller, 'settle', 'verdicts')
local last = tonumber(v[1]) or 0
-- cure: the number of a settle, 2
if number < last then
  return { 'late' }
end
-- cure: the number of a settle
if number == last then
  return { 'settled', unpack(cjson.decode(v[2])) }
end
local at, touched, verdicts = now(), {}, {}

local function taskOf(key)
  local created, failed, payload = (redis.call('HGET', tasks, key) or ''):match('^(%S+) (%S+) (.*)$')
  return created or timedNumber(at), tonumber(failed) or 0, payload or ''
end

local does = {
  done = function(entry)
    timedFree(entry, false)
  end,
  back = function(entry)
    -- Its length had passed when it was taken, though the clock may have gone back since.
    local own = tonumber(entry.lease.at)
    timedFree(entry,
      -- cure: an item that was due is due when it is given back
      own % 1 > 0 and own > at and timedAt('+0', at) or own)
  end,
  retry = function(entry, value)
    -- One that was put again meanwhile is another task, which has not failed.
    if entry.lease.after == '-' then
      local created, failed, payload = taskOf(entry.key)
      entry.task = table.concat({ created, failed + 1, payload }, ' ')
    end
    timedFree(entry, timedAt(value, at))
  end,
  discard = function(entry, value)
    local created, failed, payload = taskOf(entry.key)
    if keepFailures > 0 then
      redis.call('XADD', failures, 'MAXLEN', keepFailures, '*', 'key', entry.key, 'payload', payload,
        'created', created, 'numFailures', failed + 1, 'message', value, 'at', timedNumber(at))
    end
    timedFree(entry, false)
  end,
  keep = function(entry, value)
    -- cure: a renewal, the clock back
    entry.lease.ms = tonumber(value)
    -- cure: a renewal, the clock back, 2
    entry.lease.ends = at + entry.lease.ms
    -- cure: a renewal of what was moved
    entry.due = math.max(tonumber(entry.lease.after) or 0, entry.lease.ends)
  end,
}

-- One that somebody else has stays in his hands, so that no second lease begins beside it.
local function remove(entry)
  local there = entry.due and not (entry.lease and entry.lease.after == 'gone')
  -- cure: a removal beside the lease
  if entry.lease and entry.lease.ends > at then
    -- cure: what was removed goes with the lease
    entry.lease.after = 'gone'
    entry.due = entry.lease.ends
  else
    entry.lease, entry.due = false, false
  end
  return there and 'ok' or 'lost'
end

for i = 5, #ARGV, 4 do
  local key, token, verb, value = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  local entry = timedEntry(touched, due, leases, key, at)
  local verdict = 'ok'
  if verb == 'remove' then
    verdict = remove(entry)
  elseif entry.lease and --[[cure: the token of the lease]] entry.lease.token == token then
    does[verb](entry, value)
  else
    verdict = 'lost'
  end
  verdicts[#verdicts + 1] = verdict
end
redis.call('HSET', caller, 'settle', number, 'verdicts', cjson.encode(verdicts))
redis.call('PEXPIRE', caller, --[[cure: the number of a settle, the clock ahead]] rememberMs)
timedFlush(touched, { due = due, tasks = tasks, leases = leases, clock = clock }, channel, at)
return { 'settled', unpack(verdicts) }
