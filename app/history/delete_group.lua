-- Delete a group of a stream.
--
-- KEYS  1 stream
-- ARGV  1 group
--
-- Returns whether it existed.
if not group_of(groups_of(KEYS[1]), ARGV[1]) then return 0 end
return redis.call('XGROUP', 'DESTROY', KEYS[1], ARGV[1])
