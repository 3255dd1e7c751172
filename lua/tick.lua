--- Claims what is due on the agenda, by moving its time ahead: if the claimer dies, it is due again. Notes which
--- requests have had all their earlier tokens popped. A worker reports by the same call that it is alive.
--
-- KEYS
--   open          hash  id -> generation
--   agenda        zset  id -> time of its next attention
--   wait          zset  id -> priority * 2^44 + mark: it sleeps until its list has been popped up to mark;
--                       (100 + priority) * 2^44 + due: until what is due before it has left its lane
--   marks         hash  id -> 'epoch' or 'epoch:passedAt'
--   pushed        hash  priority -> tokens ever pushed to its list
--   parked        hash  id -> 'generation task'
--   parkedByTask  zset  'task\0id' of those, all of score 0
--   workers       zset  boot id -> time of its last sign of life
--   workerInfo    hash  boot id -> JSON
--   series        list  how the queue worked in the last hour
--   counters      hash  time of the last tick, and of the last one by a process that does not rest; when Redis was last back after it had been away, also the second time in
--                       a row; the longest gap
--                       between two ticks that still matters; the latest time by which an id was opened;
--                       how far the agenda is shifted
--   spent         zset  'id~generation' -> when to unlink what is kept of it, of those that keep much
--   paused        hash  until: when the pause of the queue ends by itself, 0: never; length: 'until ms'
--   lists...      list  tokens of the priorities 0 … 99, and the lanes that `lanes` names
-- ARGV
--   worker           string  boot id, or '' when a producer or notifier ticks
--   info             string  JSON about the worker; it begins with its figures (lib/series)
--   lockMs           int     how long a claim lasts
--   graceMs          int     from a token's pop, or a parked request's reply, to its enter at the latest
--   max              int     how many to claim at most
--   goneMs           int     a worker without a sign of life for so long is removed
--   awayMs           int     when nobody ticked for so long, Redis was away …
--   awayPerWorkerMs  int     … or for so long times the number of workers …
--   rests            int     1: … unless the caller and others that rest ticked last: they tick again within goneMs; else 0
--   lanes            string  priorities whose lanes are among the lists, '5,50', or ''
--   tasks            string  ' name name ' of the tasks whose parked requests are wanted, '*' for all, '' for none
--   maxParked        int     at most so many parked requests are answered
-- REPLIES
--   {'ok', now: int, next: int, fleet: int, claims: list(id text, generation int, passed text, claim int),
--    parked: list(id text, value text), resumedAt: int, pausedUntil: int, lanes: text, spent: list,
--    gapAt: int, gapMs: int}
--      next: time of the earliest agenda entry, or -1 · fleet: number of live workers
--      claims: {id, generation, passed, claim, …} · parked: {id, 'generation task', …}
--      resumedAt: when Redis was last back; a lease that could not be renewed until then has not ended
--      pausedUntil: when the pause of the queue ends; 0: when it is resumed; -1: it is not paused
--      lanes: priorities whose lanes are used, or waited for, as in the argument
--      spent: {'id~generation', …} to be unlinked now · gapAt, gapMs: when a gap between two ticks ended, and how long it was
-- REPEAT  claims what else is due, and answers other parked requests
-- FLAGS allow-oom

--- @include now, lane, clock-back, gaps, pause, series, registry, marks, claims, due, parked-page

local open, agenda, wait, marks, pushed, parked, parkedByTask, workers, workerInfo, series, counters, spent, paused =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11],
  KEYS[12], KEYS[13]
local lists = { unpack(KEYS, 14) }
local worker, info, lockMs, graceMs, max, goneMs =
  ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local awayMs, awayPerWorkerMs, rests = tonumber(ARGV[7]), tonumber(ARGV[8]), ARGV[9] == '1'
local lanes, tasks, maxParked = ARGV[10], ARGV[11], tonumber(ARGV[12])

local at = now()
local queue = { open = open, agenda = agenda, wait = wait, marks = marks, pushed = pushed, lists = lists }

local resumedAt, gapAt, gapMs = noteTick(counters, workers, agenda, at, awayMs, awayPerWorkerMs, rests, goneMs)
-- cure: a sign of life that lies ahead counts as now
believeSigns(workers, at)
noteWorker(workers, workerInfo, series, worker, info, at, goneMs)
removeGone(workers, workerInfo, at, goneMs)
local lanesToName = notePassed(queue, lanes, at, graceMs)
lanesToName[#lanesToName + 1] = redis.call('HGET', pushed, 'lanes') or nil
local claims, next = claimDue(queue, at, lockMs, graceMs, max)
local over = claimSpent(spent, at, lockMs)
local found = {}
-- cure: a tick reports to a worker only the requests parked for it, 2
if tasks ~= '' then
  found = takeParked(parked, parkedByTask, tasks, maxParked)
  for i = 1, #found, 2 do
    -- cure: a parked request is tended after a worker found it
    noteDue(agenda, found[i], at + graceMs)
  end
end
local pausedUntil, wasPaused = pauseEnds(paused, at)
if pausedUntil < 0 and wasPaused then
  redis.call('UNLINK', paused)
end
return {
  'ok', at, next, redis.call('ZCARD', workers), claims, found, resumedAt, pausedUntil,
  table.concat(lanesToName, ','), over, gapAt, gapMs,
}
