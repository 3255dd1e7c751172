--- @needs compact, first-state
-- Up to how many sub-requests a request is compact.
local COMPACT_ITEMS = 128

-- Whether requests with these options may be compact. Where two crashes fail a sub-request, workers read only as much as
-- they have permits for. One that is kept for a shorter time than its create may come is remembered for longer (lib/complete).
local function mayBeCompact(value, windowMs)
  return
    -- cure: where few crashes are allowed a request is not compact
    (tonumber(value.maxCrashes) or 0) > 2 and
    -- cure: a generation is remembered until its create is too old, of a compact request
    (tonumber(value.retentionMs) or 0) > windowMs + 1000
end

-- The items of a request, joined; nil: they do not fit into a compact one.
local function joined(one)
  if one.count == 0 or one.count > COMPACT_ITEMS then
    return nil
  end
  local bytes, last = 0, one.first + one.count - 1
  for i = one.first, last do
    local item = one.items[i]
    bytes = bytes + #item
    if
      bytes > COMPACT_BYTES or
      -- cure: what separates payloads is in none of them
      item:find('\30', 1, true) then
      return nil
    end
  end
  return table.concat(one.items, '\30', one.first, last)
end

-- Writes those that may be compact. Returns the others.
local function writeCompact(new, terms)
  if not mayBeCompact(terms.value, terms.windowMs) then
    return new
  end
  local written, others = {}, {}
  for _, one in ipairs(new) do
    local payloads = joined(one)
    if payloads then
      written[#written + 1], written[#written + 2] = one.request, cmsgpack.pack(firstArray(one, terms, payloads))
    else
      others[#others + 1] = one
    end
  end
  if #written > 0 then
    redis.call('MSET', unpack(written))
  end
  return others
end
