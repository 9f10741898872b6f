-- Compare and set. ARGV: the SHA-1 of the value that the new one is based on, the new value and its seconds, and the
-- digest of the content that this write ends, if any. If there is another value, nothing is written, and 0, that value
-- and the server's time are returned. A key of another type counts as empty, and no more of a value is read than a
-- snapshot has. The last value of a content that ends is kept in KEYS[2]. The lease at KEYS[3] is released if ARGV[5] is
-- its token. Returns 1, and the values that were kept in KEYS[2] before.
-- redis_snapshots.py gives ENCODED_LIMIT, UNRECORDED.
local held = redis.pcall('getrange', KEYS[1], 0, ENCODED_LIMIT)
if type(held) ~= 'string' then held = '' end
if redis.sha1hex(held) ~= ARGV[1] then
  local time = redis.call('time')
  return {0, held, time[1], time[2]}
end
redis.call('set', KEYS[1], ARGV[2], 'ex', ARGV[3])
local reply, kind = {1}, redis.call('type', KEYS[2]).ok
if kind ~= 'none' and (kind ~= 'hash' or redis.call('hlen', KEYS[2]) > UNRECORDED) then
  redis.call('del', KEYS[2])
elseif kind == 'hash' then
  for _, name in ipairs(redis.call('hkeys', KEYS[2])) do
    if redis.call('hstrlen', KEYS[2], name) <= ENCODED_LIMIT then
      reply[#reply + 1] = redis.call('hget', KEYS[2], name)
    end
  end
end
if ARGV[4] ~= '' then
  if redis.call('hlen', KEYS[2]) < UNRECORDED then redis.call('hset', KEYS[2], ARGV[4], held) end
  redis.call('expire', KEYS[2], ARGV[3])
end
if ARGV[5] ~= '' and redis.pcall('get', KEYS[3]) == ARGV[5] then redis.call('del', KEYS[3]) end
return reply
