-- The beginning of every pacing script: the keys, their checks, and what the scripts share.
--
-- KEYS  1 durable record        hash: by pool "<until> <seen>", by queue "<tail> <hold> <count> <seen>"
--       2 its expiries          sorted set: the same fields, by the instant from which they are of no use
--       3 the pool's backoff    hash: until, step, began, by, claim, agreed, seen, bad, bad_at
--       4 the queue             hash: tail, hold, fetched, count, seen, latency, recent, apart, told, reports, page_at, run,
--                               pace, shortest, shortest_until, stand_in, spent0, spent1
--       5 its slots             sorted set: "<end>:<nonce>:<caller>" by the instant at which they begin
--       6 callers               sorted set: those of the caller's API key that are active, until when
--       7 turns                 sorted set: "<caller>:<number>", those of the key, by the instant at which it is to be back
--       8 API keys              sorted set: those that are active, until when
--       9 the line              sorted set: the turns of all keys
-- ARGV  as `StateArguments` of redis_pacer.py has them, which gives their numbers as ARG_...
--
-- Instants are microseconds of this server's clock since 1970; durations are microseconds. Values that these scripts
-- did not write are deleted. What is read is bounded, even if it is foreign.
--
-- A store that evicts keys with an expiry (`volatile-*`) may evict any of 3 to 9, and the pool would be asked too
-- early. So what must still be waited for is also in 1 and 2, which have no expiry and are shared by all pools of a
-- bucket. They are bounded: each call removes what is over, and beyond MAX_DURABLE, what is over the soonest.
--
-- `seen` is when the state was written. If it is in the future, the clock has been set back, and the state is moved by
-- as much: a queue stays as long as it was, and does not grow by the size of the step. Only the processes know that the
-- clock was set forward, or that another server with such a clock has taken over: state of before is moved by the step.
-- A call that this server runs late looks like a step, and moves its queue by the delay, but no other call will.
local DURABLE, DURABLE_UNTIL, BACKOFF, QUEUE, SLOTS, CALLERS, TURNS, API_KEYS, LINE = unpack(KEYS)
local POOL_FIELD, QUEUE_FIELD = ARGV[ARG_POOL], ARGV[ARG_QUEUE]
local MAX_DURABLE = 256
local MAX_COST = 2592000e6        -- the longest time that one slot takes
local MAX_AHEAD = 2 * MAX_COST    -- instants farther ahead are not valid
local LINGER = 600e6              -- a queue is remembered for so long after its last slot
local MEMORY = 10800e6            -- and a refusal at least
local CLOSE = 0.5e6               -- ends of a backoff that differ by less are the same: calls take time

for i, kind in ipairs({'hash', 'zset', 'hash', 'hash', 'zset', 'zset', 'zset', 'zset', 'zset'}) do
  local stored = redis.call('TYPE', KEYS[i]).ok
  if stored ~= 'none' and stored ~= kind then redis.call('UNLINK', KEYS[i]) end
end
if redis.call('HLEN', DURABLE) > 2 * MAX_DURABLE or redis.call('ZCARD', DURABLE_UNTIL) > 2 * MAX_DURABLE then
  redis.call('UNLINK', DURABLE, DURABLE_UNTIL)
end

local clock = redis.call('TIME')
local now = clock[1] * 1e6 + clock[2]

-- A valid instant, or 0.
local function instant(value, max_ahead)
  local at = tonumber(value) or 0
  if at ~= at or at < 0 or at > now + (max_ahead or MAX_AHEAD) then return 0 end
  return math.floor(at)
end

local function text(number) return string.format('%.0f', number) end

-- The forward steps: pairs of the latest instant before, and by how much.
local forward = {}
local latest = tonumber(ARGV[ARG_LATEST])
if latest > 0 and now > latest then forward[1] = {latest, now - tonumber(ARGV[ARG_UNSET])} end
for before, by in string.gmatch(ARGV[ARG_STEPS], '(%d+) (%d+)') do
  if tonumber(before) < now then forward[#forward + 1] = {tonumber(before), tonumber(by)} end
end

-- What was over by this instant is over, by whichever clock it was written.
local over = now
for _, each in ipairs(forward) do over = math.max(0, over - each[2]) end

-- By how much the clock has been set back since the state was written; negative if it has been set forward.
local function step_since(seen)
  seen = tonumber(seen) or 0
  if seen ~= seen or seen <= 0 or seen > now + 100 * MAX_AHEAD then return 0 end
  if seen > now then return seen - now end
  local step = 0
  for _, each in ipairs(forward) do
    if seen <= each[1] then step = step - each[2] end
  end
  return step
end

-- The instant after the clock was set back by `step`.
local function shifted(value, step)
  local at = tonumber(value) or 0
  if at ~= at or at <= 0 then return 0 end
  return instant(math.max(0, at - step))
end

-- The `count` numbers of a field of the durable record; none if it does not have as many.
local function durable_numbers(field, count)
  local numbers, stored = {}, redis.call('HGET', DURABLE, field) or ''
  if #stored <= 100 then
    for number in string.gmatch(stored, '%d+') do numbers[#numbers + 1] = number end
  end
  return #numbers == count and numbers or {}
end

local function delete_durable(field)
  redis.call('HDEL', DURABLE, field)
  redis.call('ZREM', DURABLE_UNTIL, field)
end

local function save_durable(field, value, ends)
  if ends > now then
    redis.call('HSET', DURABLE, field, value)
    redis.call('ZADD', DURABLE_UNTIL, text(ends), field)
  else
    delete_durable(field)
  end
  for _, expired in ipairs(redis.call('ZRANGEBYSCORE', DURABLE_UNTIL, '-inf', text(over), 'LIMIT', 0, 20)) do
    delete_durable(expired)
  end
  if redis.call('ZCARD', DURABLE_UNTIL) > MAX_DURABLE then
    delete_durable(redis.call('ZRANGE', DURABLE_UNTIL, 0, 0)[1])
  end
end

local function save_durable_queue(tail, closed_until, count)
  local numbers = {text(tail), text(closed_until), text(count), text(now)}
  save_durable(QUEUE_FIELD, table.concat(numbers, ' '), math.max(tail, closed_until))
end

-- A valid duration, or 0.
local function duration(value, longest)
  local long = tonumber(value) or 0
  return long >= 0 and long <= longest and long or 0
end

-- When the fleet's backoff from the pool ends, and whether the process remembers a later end, which then holds: this
-- server was emptied, came back as it was before, or did not get the report. What has changed is written. Returns the
-- interval that the pool refused, and when, too (`pace.lua`).
local function settle_backoff()
  local stored = redis.call('HMGET', BACKOFF, 'until', 'began', 'claim', 'agreed', 'seen', 'bad', 'bad_at')
  local durable = durable_numbers(POOL_FIELD, 2)
  local step, durable_step = step_since(stored[5]), step_since(durable[2])
  local ends = math.max(shifted(stored[1], step), shifted(durable[1], durable_step))
  local known = instant(now + math.max(0, tonumber(ARGV[ARG_BACKOFF])))
  local given_back = known > math.max(ends, now) + CLOSE
  if given_back then
    ends = known
    redis.call('HSET', BACKOFF, 'began', text(now))
    redis.call('HDEL', BACKOFF, 'by', 'claim', 'agreed')
  elseif step ~= 0 then
    local began, claim, agreed = shifted(stored[2], step), shifted(stored[3], step), shifted(stored[4], step)
    redis.call('HSET', BACKOFF, 'began', text(began), 'claim', text(claim), 'agreed', text(agreed))
  end
  local bad, bad_at = duration(stored[6], MAX_COST), math.min(shifted(stored[7], step), now)
  if step ~= 0 and bad_at > 0 then redis.call('HSET', BACKOFF, 'bad_at', text(bad_at)) end
  if given_back or step ~= 0 or durable_step ~= 0 then
    redis.call('HSET', BACKOFF, 'until', text(ends), 'seen', text(now))
    save_durable(POOL_FIELD, text(ends) .. ' ' .. text(now), ends)
    local expiry = math.ceil((math.max(ends, now) - now + LINGER) / 1000)
    redis.call('PEXPIRE', BACKOFF, math.max(expiry, redis.call('PTTL', BACKOFF)))
  end
  return ends, given_back, bad, bad_at
end
