-- An outcome of this entry has come: what its handler reported goes, and in a pinned request (see lib/trim) so does the
-- entry, unless it is pending. An entry that the group has not read yet stays: it will be delivered again.
local function noteReported(batch, id, index)
  if batch.pinned and --[[cure: an entry that is unread again is not deleted]] tonumber(index) <= batch.readTo
    and not redis.call('XPENDING', batch.work, 'workers', id, id, 1)[1] then
    redis.call('XDEL', batch.work, id)
  end
  if batch.hasProgress then
    batch.ended[#batch.ended + 1] = index
  end
end
