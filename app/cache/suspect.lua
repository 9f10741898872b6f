-- Returns whether another instance has left its name here; if not, leaves ours for so many milliseconds.
local held = redis.pcall('get', KEYS[1])
if type(held) == 'string' and held ~= ARGV[1] then return 1 end
redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2])
return 0
