-- ARGV: bytes that may be returned, bytes of the longest valid value, and fields. Returns the values of the first
-- fields, as many as fit and one at least; "" for one that is too long, false for a missing one.
local found, room, longest = {}, tonumber(ARGV[1]), tonumber(ARGV[2])
for i = 3, #ARGV do
  local long = redis.call('HSTRLEN', KEYS[1], ARGV[i])
  if long > longest then
    found[#found + 1] = ''
  else
    if #found > 0 and long > room then break end
    found[#found + 1] = redis.call('HGET', KEYS[1], ARGV[i])
    room = room - long
  end
end
return found
