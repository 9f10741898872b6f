-- Returns at most as much as a list can have, whatever the value is.
-- origin_lists.py gives LISTED, LONGEST_KEY.
local found = redis.pcall('ZREVRANGE', KEYS[1], 0, LISTED - 1, 'WITHSCORES')
local listed = {}
if found.err then return listed end
for i = 1, #found, 2 do
  if #found[i] <= LONGEST_KEY then
    listed[#listed + 1] = found[i]
    listed[#listed + 1] = found[i + 1]
  end
end
return listed
