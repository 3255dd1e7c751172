-- Whether a key that this script unlinks may be written again by it. In a hash slot that is on its way to another
-- server it may not: a key that is not there is looked for at the other one, and each call that names it fails.
-- `gone` is another key of the slot, which the script has just unlinked.
local function mayWriteAgain(gone)
  return redis.pcall('EXISTS', gone) == 0
end
