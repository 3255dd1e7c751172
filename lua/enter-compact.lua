--- Enters compact requests (lib/compact), several in one call: each with one token, for a worker that has no permits of it.
--- `enter` does the same to one request of any form.
--
-- KEYS
--   requests...  any  state of each
-- ARGV
--   worker       string  boot id of the worker process
--   leaseMs      int     this and the next four: as in `enter`
--   tasks        string
--   most         int
--   ahead        int
--   quick        int
--   entering...  (generation int, op int, want int, epoch int)  of each
-- REPLIES
--   {'entered', ends: int, entered: list}
--      ends: when the leases end, server time · entered: of each 'permits epoch attempts', priority, task, policy, and all
--      payloads from index 0 on, in one text with RS (U+001E) between them; the rest is as in a reply of `enter` with
--      mint, dueNow, ready and live 0, compact 1, quick as asked for, and op as grantNo. '': nothing was done by this call
-- REPEAT  '' for what was entered; `enter` with the same op answers as a repeat
-- FLAGS allow-oom

--- @include now, digits, compact, compact-enter

local requests = KEYS
local worker, leaseMs, tasks, most, ahead, quick =
  ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local entering = { unpack(ARGV, 7) }

local ends, entered = now() + leaseMs, {}
for i, request in ipairs(requests) do
  local text = ''
  if isCompact(request) then
    local generation, op, want, epoch = unpack(entering, 4 * i - 3, 4 * i)
    local grant, c = enterCompact(request, generation, worker, tonumber(op), countOf(want), ends, leaseMs, tasks, most,
      ahead, quick, countOf(epoch))
    if grant then
      local head = digits(grant) .. ' ' .. digits(c[5]) .. ' ' .. c[14]
      text = enteredText(head, c)
    end
  end
  entered[i] = text
end
return { 'entered', ends, entered }
