-- By the server's clock. A process that has missed five announcements is removed. The key has no expiry, so that a store
-- which evicts by `volatile-*` keeps it: without it, each process would briefly believe that it is the only one.
-- membership.py gives GONE_AFTER.
local stored = redis.call('TYPE', KEYS[1]).ok
if stored ~= 'none' and stored ~= 'zset' then redis.call('DEL', KEYS[1]) end
local now = tonumber(redis.call('TIME')[1])
local before = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or -1)
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - GONE_AFTER)
redis.call('PERSIST', KEYS[1])
local names = redis.call('ZREVRANGE', KEYS[1], 0, 4095)
table.sort(names)
for rank, name in ipairs(names) do
  if name == ARGV[1] then return {rank - 1, #names, before, now} end
end
return {0, 0, before, now}
