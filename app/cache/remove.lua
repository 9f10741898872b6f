-- Removes the names in ARGV[1], one a line, from the lists that there are; a value of another type is removed.
local names
for _, key in ipairs(KEYS) do
  local kind = redis.call('type', key).ok
  if kind == 'zset' then
    if not names then
      names = {}
      for name in string.gmatch(ARGV[1], '%S+') do names[#names + 1] = name end
    end
    redis.call('zrem', key, unpack(names))
  elseif kind ~= 'none' then
    redis.call('del', key)
  end
end
