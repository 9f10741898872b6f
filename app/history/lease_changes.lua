-- Lease changes to a caller of a group: first those whose lease has ended without an acknowledgement, then new ones.
--
-- KEYS  1 stream
-- ARGV  1 group   2 consumer   3 ms of a lease   4 changes to lease   5 changes that a group may have leased at once
--       6 where a new group begins: an id, 0-0 for the oldest change, '$' for the end; '' to make no group
--       7 groups that the stream may have   8 bytes of the longest change
--
-- Returns one of
--   {'leased', id, text, id, text, ...}, with '' for the text of an entry that is too long or not a change
--   {'unknown'} if the group does not exist, {'full'} if there are too many
--   {'removed', oldest id} if changes were removed that the group did not get, or did not acknowledge
--   {'too old', oldest id} if a new group would begin where changes were removed
local stream, name, consumer, lease = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local count, most, start = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6]

local groups = groups_of(stream)
local group = group_of(groups, name)
local length, added, oldest, newest = 0, 0, false, '0-0'
local kind = redis.call('TYPE', stream).ok
if kind == 'stream' then
  local info = fields(redis.call('XINFO', 'STREAM', stream))
  length, added, newest = info.length, info['entries-added'], info['last-generated-id']
  oldest = info['first-entry'] and info['first-entry'][1]
end
local removed = oldest and added > length

-- A group beyond the end would miss changes until their ids reach it. Only other programs can have set it there.
if group and precedes(newest, group['last-delivered-id']) then
  redis.call('XGROUP', 'DESTROY', stream, name)
  group, groups = nil, groups_of(stream)
end
if group then
  -- Entries that were removed are still pending if they were leased; XCLAIM would drop them silently.
  local last = group['last-delivered-id']
  if removed and (precedes(last, oldest) and has_gap(last, oldest)
      or #redis.call('XPENDING', stream, name, 'IDLE', lease, '-', '(' .. oldest, 1) > 0) then
    return {'removed', oldest}
  end
else
  if start == '' then return {'unknown'} end
  if #groups >= tonumber(ARGV[7]) then return {'full'} end
  if start == '0-0' then
    -- In an empty stream a group begins at the end, or what is removed before its first change could not be noticed.
    if not oldest then start = '$' end
  elseif start ~= '$' then
    if precedes(newest, start) then start = '$'
    elseif removed and precedes(start, oldest) then return {'too old', oldest} end
  end
  if kind ~= 'stream' and kind ~= 'none' then redis.call('DEL', stream) end
  redis.call('XGROUP', 'CREATE', stream, name, start, 'MKSTREAM')
  redis.call('XGROUP', 'CREATECONSUMER', stream, name, consumer)
end

local reply = {'leased'}
if not oldest then return reply end

local function add(entries)
  for _, entry in ipairs(entries) do
    local values = entry[2]
    local is_change = #values == 2 and values[1] == 'change' and #values[2] <= tonumber(ARGV[8])
    reply[#reply + 1] = entry[1]
    reply[#reply + 1] = is_change and values[2] or ''
  end
end

local ended = redis.call('XPENDING', stream, name, 'IDLE', lease, '-', '+', count)
for i, entry in ipairs(ended) do ended[i] = entry[1] end
if #ended > 0 then add(redis.call('XCLAIM', stream, name, consumer, 0, unpack(ended))) end
local room = math.min(count - #ended, most - redis.call('XPENDING', stream, name)[1])
if room > 0 then
  local new = redis.call('XREADGROUP', 'GROUP', name, consumer, 'COUNT', room, 'STREAMS', stream, '>')
  if new then add(new[1][2]) end
end
return reply
