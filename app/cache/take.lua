-- Returns the server's time at which the lease was taken, or nothing, and the origin's value at KEYS[2]. A value that is
-- not a lease, or never expires, is replaced. ARGV[3] is "force" to take the lease from its holder and read nothing.
-- redis_snapshots.py gives ENCODED_LIMIT, LONGEST_LEASE.
local found = ARGV[3] ~= 'force' and redis.pcall('getrange', KEYS[2], 0, ENCODED_LIMIT)
if type(found) ~= 'string' then found = false end
if not redis.call('set', KEYS[1], ARGV[1], 'nx', 'px', ARGV[2]) then
  local held, left = redis.pcall('get', KEYS[1]), redis.call('pttl', KEYS[1])
  local ours = type(held) == 'string' and #held <= 64 and left >= 0 and left <= LONGEST_LEASE
  if ours and ARGV[3] ~= 'force' then return {false, found} end
  redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2])
end
return {redis.call('time'), found}
