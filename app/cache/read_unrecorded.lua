-- No more is read than UNRECORDED values of the length of a snapshot.
-- redis_snapshots.py gives ENCODED_LIMIT, UNRECORDED.
if redis.call('type', KEYS[1]).ok ~= 'hash' or redis.call('hlen', KEYS[1]) > UNRECORDED then
  redis.call('del', KEYS[1])
  return {}
end
local found = {}
for _, name in ipairs(redis.call('hkeys', KEYS[1])) do
  if redis.call('hstrlen', KEYS[1], name) <= ENCODED_LIMIT then
    found[#found + 1] = redis.call('hget', KEYS[1], name)
  end
end
return found
