-- Note that a process is a member of the fleet, and which list of members it goes by; return its number in the list.
--
-- KEYS  1 members        sorted set: names, by the server's second at which they were last announced
--       2 known lists    hash: by name, the digest of the list that the process had in its last reply
-- ARGV  1 the name   2 that digest, or empty
--
-- A process that has missed five announcements is removed. The keys have no expiry, so that a store which evicts by
-- `volatile-*` keeps them: without them, each process would briefly believe that it is the only one. membership.py
-- gives GONE_AFTER.
--
-- Returns {its number, the size of the fleet, when it was announced before, now, the digest of the list, 1 if all
-- members know this list}.
local MEMBERS, KNOWN = unpack(KEYS)
for i, kind in ipairs({'zset', 'hash'}) do
  local stored = redis.call('TYPE', KEYS[i]).ok
  if stored ~= 'none' and stored ~= kind then redis.call('DEL', KEYS[i]) end
end
local now = tonumber(redis.call('TIME')[1])
local before = tonumber(redis.call('ZSCORE', MEMBERS, ARGV[1]) or -1)
redis.call('ZADD', MEMBERS, now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', MEMBERS, '-inf', now - GONE_AFTER)
redis.call('HSET', KNOWN, ARGV[1], ARGV[2])
for _, key in ipairs(KEYS) do redis.call('PERSIST', key) end
local names = redis.call('ZREVRANGE', MEMBERS, 0, 4095)
table.sort(names)
local list, number, agreed = redis.sha1hex(table.concat(names, '\n')), nil, 1
for rank, name in ipairs(names) do
  if name == ARGV[1] then number = rank - 1 end
  if redis.call('HGET', KNOWN, name) ~= list then agreed = 0 end
end
if redis.call('HLEN', KNOWN) > #names then
  for _, name in ipairs(redis.call('HKEYS', KNOWN)) do
    if not redis.call('ZSCORE', MEMBERS, name) then redis.call('HDEL', KNOWN, name) end
  end
end
if not number then return {0, 0, before, now, list, 0} end
return {number, #names, before, now, list, agreed}
