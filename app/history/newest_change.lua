local newest = redis.pcall('xrevrange', KEYS[1], '+', '-', 'count', 1)
if newest.err or #newest == 0 then return '' end
return newest[1][1]
