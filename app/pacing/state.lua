-- What every script of the pacing begins with.
--
-- KEYS  1 what is kept          hash: by place "<until> <seen>", by lane "<tail> <hold> <count> <seen>"
--       2 when it may go        sorted set: the same fields, by the instant from which they say nothing any more
--       3 the origin's back-off hash: until, step, began, by, claim, agreed, seen
--       4 the lane              hash: tail, hint, hold, fetched, counted, count, seen
--       5 its slots             sorted set: "<end>:<nonce>:<caller>" by the instant to go at
--       6 its callers           sorted set: by the instant they last asked
--       7 slots ahead           hash: by caller
-- ARGV  1 the place   2 the lane: the fields of KEYS[1]
--
-- Instants are microseconds of this server's clock since 1970, lengths of time microseconds. Whatever is found that
-- these scripts do not write is not ours, and goes; what is read is bounded, whoever wrote it.
--
-- A store that evicts keys with an expiry (`volatile-*`) may evict any of 3 to 7, and then the origin would be asked
-- too early. So what is still to be waited for stands a second time in 1 and 2, which have no expiry and are shared by
-- all origins of a bucket. They are bounded: what is over goes with the next calls, and beyond MOST_KEPT, what is over
-- the soonest.
--
-- `seen` is when the state was written. If that is in the future, the clock has been set back, and the state is moved
-- by as much: a queue lasts as long as it did, and not longer by the size of the step.
local KEPT, KEPT_UNTIL, BACKOFF, LANE, SLOTS, CALLERS, AHEAD = unpack(KEYS)
local PLACE_FIELD, LANE_FIELD = ARGV[1], ARGV[2]
local MOST_KEPT = 256
local LONGEST = 2592000e6    -- what is fetched at once is made up for after so long
local FARTHEST = 2 * LONGEST -- what lies farther ahead is nonsense
local LINGER = 600e6         -- for so long after its last slot a lane is remembered

for place, kind in ipairs({'hash', 'zset', 'hash', 'hash', 'zset', 'zset', 'hash'}) do
  local held = redis.call('TYPE', KEYS[place]).ok
  if held ~= 'none' and held ~= kind then redis.call('UNLINK', KEYS[place]) end
end
if redis.call('HLEN', KEPT) > 2 * MOST_KEPT or redis.call('ZCARD', KEPT_UNTIL) > 2 * MOST_KEPT then
  redis.call('UNLINK', KEPT, KEPT_UNTIL)
end

local clock = redis.call('TIME')
local now = clock[1] * 1e6 + clock[2]

local function instant(value, farthest)
  local at = tonumber(value) or 0
  if at ~= at or at < 0 or at > now + (farthest or FARTHEST) then return 0 end
  return math.floor(at)
end

local function text(number) return string.format('%.0f', number) end

-- By how much the clock has been set back since then.
local function step_since(seen)
  seen = tonumber(seen) or 0
  if seen ~= seen or seen <= now or seen > now + 100 * FARTHEST then return 0 end
  return seen - now
end

local function moved(value, step)
  local at = tonumber(value) or 0
  return at ~= at and 0 or instant(math.max(0, at - step))
end

-- Up to `count` numbers that were kept in that field.
local function kept(field, count)
  local numbers, held = {}, redis.call('HGET', KEPT, field) or ''
  if #held <= 100 then
    for number in string.gmatch(held, '%d+') do numbers[#numbers + 1] = number end
  end
  return #numbers == count and numbers or {}
end

local function forget(field)
  redis.call('HDEL', KEPT, field)
  redis.call('ZREM', KEPT_UNTIL, field)
end

local function keep(field, value, ends)
  if ends > now then
    redis.call('HSET', KEPT, field, value)
    redis.call('ZADD', KEPT_UNTIL, text(ends), field)
  else
    forget(field)
  end
  for _, over in ipairs(redis.call('ZRANGEBYSCORE', KEPT_UNTIL, '-inf', text(now), 'LIMIT', 0, 20)) do forget(over) end
  if redis.call('ZCARD', KEPT_UNTIL) > MOST_KEPT then forget(redis.call('ZRANGE', KEPT_UNTIL, 0, 0)[1]) end
end

local function keep_lane(tail, hold, count)
  local numbers = {text(tail), text(hold), text(count), text(now)}
  keep(LANE_FIELD, table.concat(numbers, ' '), math.max(tail, hold))
end

-- Until when the fleet backs off from the place.
local function back_off_ends()
  local held, second = redis.call('HMGET', BACKOFF, 'until', 'seen'), kept(PLACE_FIELD, 2)
  return math.max(moved(held[1], step_since(held[2])), moved(second[1], step_since(second[2])))
end

