-- Whether this script may write a key that it has unlinked. While the hash slot migrates to another server it may not:
-- a missing key is assumed to be on that server already, and every call that names it fails.
-- `gone` is another key of the slot, which the script has just unlinked.
local function mayWriteAgain(gone)
  return redis.pcall('EXISTS', gone) == 0
end
