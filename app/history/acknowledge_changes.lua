-- Acknowledge changes of a group. It may also acknowledge that it missed changes, which were removed.
--
-- KEYS  1 stream
-- ARGV  1 group   2 ms of a lease   3 the id before which changes were removed, or ''   4 the predecessor of that id
--       5 ... ids of changes
--
-- Returns {number of changes that were leased and now are not}; {} if the group does not exist.
local stream, name, lease, missed_before = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local ROUNDS, AT_ONCE = 10, 1000

local group = group_of(groups_of(stream), name)
if not group then return {} end

if missed_before ~= '' then
  local first = fields(redis.call('XINFO', 'STREAM', stream))['first-entry']
  if first and not precedes(first[1], missed_before) then
    for _ = 1, ROUNDS do
      local ended = redis.call('XPENDING', stream, name, 'IDLE', lease, '-', '(' .. missed_before, AT_ONCE)
      for i, entry in ipairs(ended) do ended[i] = entry[1] end
      if #ended > 0 then redis.call('XACK', stream, name, unpack(ended)) end
      if #ended < AT_ONCE then break end
    end
    if precedes(group['last-delivered-id'], ARGV[4]) then redis.call('XGROUP', 'SETID', stream, name, ARGV[4]) end
  end
end
if #ARGV < 5 then return {0} end
return {redis.call('XACK', stream, name, unpack(ARGV, 5))}
