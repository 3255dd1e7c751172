--- @needs timed-times, timed-entries, timed-clock
-- The keys that are due, with their payloads, in due order, and how many bytes they are. A key that was removed while it
-- was taken goes now that its lease has ended. A payload is read once; a key is written several times besides, and
-- each key costs something: hence the weights.
local function timedDue(touched, keys, at, count)
  local found, read, bytes, longest, ends = {}, 0, 0, 1, false
  repeat
    local size = timedPage(math.min(read == 0 and 1 or 8, count - #found), longest)
    local page = redis.call('ZRANGE', keys.due, read, read + size - 1, 'WITHSCORES')
    read = read + size
    for i = 1, #page, 2 do
      local key, score = page[i], page[i + 1]
      ends = tonumber(score) >= at + 1
      if ends or bytes >= 1048576 then
        break
      end
      local entry = timedEntry(touched, keys.due, keys.leases, key, at, score)
      longest = math.max(longest, #key)
      -- cure: what was removed goes with the lease, 2
      if entry.lease and entry.lease.after == 'gone' then
        timedFree(entry)
      else
        found[#found + 1] = entry
        entry.payload = redis.call('HGET', keys.tasks, key) or ''
        -- cure: a take of a timed set is bounded by bytes
        bytes = bytes + #entry.payload
      end
      bytes = bytes +
        -- cure: each key counts in a take of a timed set
        2500 +
        -- cure: long keys count in a take of a timed set
        3 * #key
    end
    ends = ends or #page < 2 * size
  until ends or #found == count or bytes >= 1048576
  return found, bytes
end

-- Puts the first `grant` of the entries under leases of this take. Returns them and their keys. The others stay as they
-- are.
local function timedLease(touched, found, grant, token, at, leaseMs)
  local taken, names = {}, {}
  for i = 1, grant do
    local entry = found[i]
    local own, after = entry.due, entry.lease and entry.lease.after
    if after then
      own = after == '-' and entry.lease.at or after
    end
    entry.lease = { token = token, at = timedText(own), ends = at + leaseMs, ms = leaseMs, after = '-' }
    entry.due = entry.lease.ends
    taken[i], names[i] = entry, entry.key
  end
  for i = #touched, 1, -1 do
    local entry = touched[i]
    if entry.due and not (entry.lease and entry.lease.token == token) then
      table.remove(touched, i)
    end
  end
  return taken, names
end
