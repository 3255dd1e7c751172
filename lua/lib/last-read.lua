-- How far the group has read: the greatest index that was ever delivered; -1: none.
local function lastRead(work)
  local group = redis.call('XINFO', 'GROUPS', work)[1]
  for i = 1, #group, 2 do
    if group[i] == 'last-delivered-id' then
      return group[i + 1] == '0-0' and -1 or tonumber(group[i + 1]:match('%d+$'))
    end
  end
end
