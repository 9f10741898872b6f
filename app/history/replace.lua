-- Writes only if the value has not changed since it was read. Comparing the head is enough: it identifies the write.
-- ARGV[3]: the digest of the version that is now in the history, so that KEYS[2] need not keep it any more.
-- redis_history.py gives HEAD, EXPIRY.
local head = redis.pcall('GETRANGE', KEYS[1], 0, HEAD - 1)
if type(head) ~= 'string' then head = '' end
if head ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'EX', EXPIRY)
redis.pcall('HDEL', KEYS[2], ARGV[3])
return 1
