-- Removes the names in ARGV[1], one a line, from the list KEYS[1] if there is one; a value of another type is removed.
local kind = redis.call('type', KEYS[1]).ok
if kind == 'zset' then
  local names = {}
  for name in string.gmatch(ARGV[1], '%S+') do names[#names + 1] = name end
  redis.call('zrem', KEYS[1], unpack(names))
elseif kind ~= 'none' then
  redis.call('del', KEYS[1])
end
