-- Read the origins whose facts have changed since a version, oldest change first.
--
-- KEYS  as in report.lua
-- ARGV  1 version   2 origins to return   3 bytes of the longest origin   4 bytes of the longest value
--
-- Returns {oldest version in the store, newest version, origin, version, facts, origin, version, facts, ...}; the facts
-- are "" if they have ended. Returns nothing if there are none.
local facts, changes = KEYS[1], KEYS[2]
local kind = redis.call('TYPE', facts).ok
if (kind ~= 'hash' and kind ~= 'none') or redis.call('TYPE', changes).ok ~= 'zset' then return {} end
local oldest = redis.call('ZRANGE', changes, 0, 0, 'WITHSCORES')[2]
local newest = redis.call('ZREVRANGE', changes, 0, 0, 'WITHSCORES')[2]
local reply = {oldest, newest}
local changed = redis.call('ZRANGEBYSCORE', changes, '(' .. ARGV[1], '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[2])
for i = 1, #changed, 2 do
  local origin, text = changed[i], ''
  if #origin > tonumber(ARGV[3]) then origin = '' end
  if redis.call('HSTRLEN', facts, changed[i]) <= tonumber(ARGV[4]) then
    text = redis.call('HGET', facts, changed[i]) or ''
  end
  reply[#reply + 1], reply[#reply + 2], reply[#reply + 3] = origin, changed[i + 1], text
end
return reply
