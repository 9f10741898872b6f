-- ARGV: the id to read after, and how many. Returns whether the feed has a change of that id, the ids of its oldest and
-- newest changes, whether older ones were removed, and entries, without their text if it is longer than that of a change
-- can be.
-- redis_changes.py gives LONGEST.
local oldest = redis.pcall('xrange', KEYS[1], '-', '+', 'count', 1)
if oldest.err or #oldest == 0 then return {0, '', '', 0, {}} end
local known = #redis.call('xrange', KEYS[1], ARGV[1], ARGV[1])
local removed = 0
local info = redis.call('xinfo', 'stream', KEYS[1])
for i = 1, #info, 2 do
  if info[i] == 'entries-added' and info[i + 1] > redis.call('xlen', KEYS[1]) then removed = 1 end
end
local found = {}
for _, entry in ipairs(redis.call('xrange', KEYS[1], '(' .. ARGV[1], '+', 'count', ARGV[2])) do
  if #entry[2] == 2 and #entry[2][2] <= LONGEST then found[#found + 1] = {entry[1], entry[2][2]}
  else found[#found + 1] = {entry[1], ''} end
end
local newest = redis.call('xrevrange', KEYS[1], '+', '-', 'count', 1)
return {known, oldest[1][1], newest[1][1], removed, found}
