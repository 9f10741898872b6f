-- ARGV: the seconds of AGAIN, the length of the stream, the change. A value of another type is replaced.
if not redis.call('set', KEYS[2], 1, 'nx', 'ex', ARGV[1]) then return 0 end
local added = redis.pcall('xadd', KEYS[1], 'maxlen', '~', ARGV[2], '*', 'change', ARGV[3])
if type(added) == 'table' and added.err then
  redis.call('del', KEYS[1])
  redis.call('xadd', KEYS[1], '*', 'change', ARGV[3])
end
return 1
