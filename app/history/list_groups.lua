-- List the groups of a stream.
--
-- KEYS  1 stream
-- ARGV  1 consumer   2 groups to return   3 bytes of the longest name
--
-- Returns {name, changes not yet leased, changes leased, ms since the consumer last read, ...}; -1 for unknown.
local stream, reply = KEYS[1], {}
for i, group in ipairs(groups_of(stream)) do
  if i > tonumber(ARGV[2]) then break end
  if #group.name <= tonumber(ARGV[3]) then
    local idle = -1
    for _, it in ipairs(redis.call('XINFO', 'CONSUMERS', stream, group.name)) do
      local consumer = fields(it)
      if consumer.name == ARGV[1] then idle = consumer.idle end
    end
    for _, value in ipairs({group.name, group.lag or -1, group.pending, idle}) do reply[#reply + 1] = value end
  end
end
return reply
