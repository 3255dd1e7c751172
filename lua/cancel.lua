--- Cancels a request: what no worker runs at once; what runs keeps its outcome if it succeeds.
--
-- KEYS
--   request   any     state of the request
--   work      stream  its sub-requests
--   due       zset    delayed and returned sub-requests
--   tries     hash    index -> failed attempts; 'index:crashes' -> crashes; 'index:alone' -> worker
--   progress  hash    index -> what its handler last reported
--   failed    hash    index -> error; 'index:payload' -> payload
--   results   stream  outcomes in the order of settling
-- ARGV
--   generation  int     of the request
--   channel     string  shard channel of the request
-- REPLIES
--   {'cancelling', left: int}  it completes when the last running one is settled; left: returned ones that
--                         the next tends will cancel
--   {'complete', outcome: outcome, spentAt: int?}  the request is complete, perhaps it was before · spentAt: for `finish`
--   {'gone'}               no such generation
-- REPEAT  the same reply, or 'complete'
-- FLAGS allow-oom

--- @include now, digits, compact, state, books, cancel, exceeded, replace, notice, complete, ended-early

local request, work, due, tries, progress, failed, results =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local generation, channel = ARGV[1], ARGV[2]

local state = readState(request, work, generation)
if not state then
  return { 'gone' }
end
if state.status == 'complete' then
  -- cure: every reply on a completion says what to unlink, of cancel
  return { 'complete', endOf(request, work) }
end
local at = state.at
endEarly(request, state, 'cancel')
local left = cancelIdle(request, state, work, due, at)
local spent = { kept = { failed, results }, keys = { work, due, tries, progress } }
local outcome = completeIfDone(request, state, at, channel, spent)
if outcome then
  return { 'complete', outcome, state.spentAt }
end
return { 'cancelling', left }
