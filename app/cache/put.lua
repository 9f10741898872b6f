-- Compare and set. ARGV: the SHA-1 of the value that the new one is based on, the new value and its seconds, and the
-- digest of the content that this write ends, if any. If there is another value, it is returned with the server's time
-- and nothing is written. A key of another type counts as empty, and no more of a value is read than a snapshot has.
-- The last value of a content that ends is kept in KEYS[2]. The lease at KEYS[3] is released if ARGV[5] is its token.
-- Returns 1, or 2 if other values were kept in KEYS[2] before.
-- redis_snapshots.py gives ENCODED_LIMIT, UNRECORDED.
local held = redis.pcall('getrange', KEYS[1], 0, ENCODED_LIMIT)
if type(held) ~= 'string' then held = '' end
if redis.sha1hex(held) == ARGV[1] then
  redis.call('set', KEYS[1], ARGV[2], 'ex', ARGV[3])
  local kind = redis.call('type', KEYS[2]).ok
  if ARGV[4] ~= '' then
    if kind ~= 'hash' then redis.call('del', KEYS[2]) end
    if redis.call('hlen', KEYS[2]) < UNRECORDED then redis.call('hset', KEYS[2], ARGV[4], held) end
    redis.call('expire', KEYS[2], ARGV[3])
  end
  if ARGV[5] ~= '' and redis.pcall('get', KEYS[3]) == ARGV[5] then redis.call('del', KEYS[3]) end
  return kind == 'hash' and 2 or 1
end
local time = redis.call('time')
return {held, time[1], time[2]}
