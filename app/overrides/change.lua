-- KEYS: the hash and the audit. ARGV: the id, the SHA-1 of the row to be replaced, the new row ("" to remove it), the
-- entry for the audit, and the limits. Nothing is written if another row is there by now.
-- redis_overrides.py gives VERSION, BYTES, LONGEST_VERSION.
local rows, audit = KEYS[1], KEYS[2]
local id, expected, row, entry = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
-- A script that fails is not rolled back, so what fails for a key of another type comes before the first write.
-- A version has the time of the first change, the number of this one, and its time, so that a store that has lost all
-- or the latest changes never repeats a version for another state.
local time = redis.call('TIME')
local clock = time[1] .. string.format('%06d', tonumber(time[2]))
local written = redis.call('HGET', rows, VERSION) or ''
local born, last = nil, nil
if #written <= LONGEST_VERSION then born, last = string.match(written, '^(%d+) (%d+) %d+$') end
if not last or #last > 11 then born, last = clock, 0 end
local now = tonumber(last) + 1
redis.call('LLEN', audit)
local held = redis.call('HGET', rows, id) or ''
if redis.sha1hex(held) ~= expected then return 'changed' end
local total, count = tonumber(redis.call('HGET', rows, BYTES)), 0
for _, name in ipairs({VERSION, BYTES}) do count = count - redis.call('HEXISTS', rows, name) end
count = count + redis.call('HLEN', rows)
if not total then
  total = 0
  for _, name in ipairs(redis.call('HKEYS', rows)) do total = total + redis.call('HSTRLEN', rows, name) end
end
total = total - #held + #row
if row == '' then
  redis.call('HDEL', rows, id)
else
  if held == '' and count >= tonumber(ARGV[5]) then return 'many' end
  if total > tonumber(ARGV[6]) then return 'large' end
  redis.call('HSET', rows, id, row)
end
redis.call('HSET', rows, VERSION, string.format('%s %.0f %s', born, now, clock),
  BYTES, string.format('%.0f', math.max(total, 0)))
redis.call('LPUSH', audit, entry)
redis.call('LTRIM', audit, 0, tonumber(ARGV[7]) - 1)
return 'done'
