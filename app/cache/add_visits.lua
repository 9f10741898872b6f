-- A value of another type or format is ignored, and so is a tally from the future, which would outweigh all others until
-- then. The arithmetic is that of Tally.
-- visits.py gives VALUE_LIMIT, HEAVIEST, HALF_LIFE, EXPIRY.
local function numbers(a, b, c) return tonumber(a), tonumber(b), tonumber(c) end
local weight, at, since = numbers(ARGV[1], ARGV[2], ARGV[3])
local latest = tonumber(ARGV[4])
local held = redis.pcall('GET', KEYS[1])
if type(held) == 'string' and #held <= VALUE_LIMIT then
  local w, t, s = numbers(string.match(held, '^V1 ([%d.e+-]+) (%d+) (%d+)$'))
  if w and w >= 0 and w <= HEAVIEST and s <= t and t <= latest then
    local now = math.max(at, t)
    weight = weight * 2 ^ ((at - now) / HALF_LIFE) + w * 2 ^ ((t - now) / HALF_LIFE)
    at, since = now, math.min(since, s)
  end
end
local value = string.format('V1 %.9g %.0f %.0f', weight, at, since)
redis.call('SET', KEYS[1], value, 'EX', EXPIRY)
return value
