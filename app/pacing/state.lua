-- The beginning of every pacing script: the keys, their checks, and what the scripts share.
--
-- KEYS  1 durable record        hash: by pool and by queue "<until> <seen>"
--       2 its expiries          sorted set: the same fields, by the instant from which they are of no use
--       3 the pool's backoff    hash: BACKOFF_FIELDS, `by`, and `seen`
--       4 the queue             hash: QUEUE_FIELDS of reserve.lua, spent0, spent1, and `seen`
--       5 its slots             sorted set: "<end>:<nonce>:<caller>" by the instant at which they begin
--       6 callers               sorted set: those of the caller's API key that are active, until when
--       7 turns                 sorted set: "<caller>:<number>", those of the key, by the instant at which it is to be back
--       8 API keys              sorted set: those that are active, until when
--       9 the line              sorted set: the turns of all keys
-- ARGV  JSON: `Knowledge` of redis_pacer.py, and then what is asked
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
local KNOWN, ASK = cjson.decode(ARGV[1]), cjson.decode(ARGV[2])
local MAX_DURABLE = 256
local MAX_COST = 2592000e6        -- the longest time that one slot takes
local MAX_AHEAD = 2 * MAX_COST    -- instants farther ahead are not valid
local LINGER = 600e6              -- a queue is remembered for so long after its last slot
local MEMORY = 10800e6            -- and a refusal at least
local CLOSE = 0.5e6               -- ends of a backoff that differ by less are the same: calls take time

-- What each key has at most. One of another type is deleted, too.
local is_hash = {true, false, true, true}
for i, most in ipairs({2 * MAX_DURABLE, 2 * MAX_DURABLE, 100, 100, 2 * MAX_SLOTS, MAX_ACTIVE + 1, MAX_ACTIVE, MAX_ACTIVE,
  20 * MAX_ACTIVE}) do
  local count = is_hash[i] and redis.pcall('HLEN', KEYS[i]) or redis.pcall('ZCARD', KEYS[i])
  if type(count) ~= 'number' or count > most then redis.call('UNLINK', KEYS[i]) end
end

local clock = redis.call('TIME')
local now = clock[1] * 1e6 + clock[2]

-- A valid instant after the clock was set back by `step`, or 0.
local function instant(value, step)
  local at = tonumber(value) or 0
  at = at > 0 and math.floor(math.max(0, at - (step or 0))) or 0
  return at <= now + MAX_AHEAD and at or 0
end

-- A valid duration or number, or 0.
local function duration(value, longest)
  local long = tonumber(value) or 0
  return long >= 0 and long <= longest and long or 0
end

local function text(number) return string.format('%d', number) end

-- The forward steps: pairs of the latest instant before, and by how much. What was over by `over` is over, by whichever
-- clock it was written.
local forward, over = {}, now
if KNOWN.latest > 0 and now > KNOWN.latest then table.insert(KNOWN.steps, {KNOWN.latest, now - KNOWN.unset}) end
for _, step in ipairs(KNOWN.steps) do
  if step[1] < now then forward[#forward + 1], over = step, math.max(0, over - step[2]) end
end

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

-- Until when a field of the durable record holds, and the step of the clock since it was written.
local function durable_until(field)
  local ends, seen = string.match(redis.call('HGET', DURABLE, field) or '', '^(%d+) (%d+)$')
  local step = step_since(seen)
  return instant(ends, step), step
end

local function save_durable(field, ends)
  redis.call('HSET', DURABLE, field, text(ends) .. ' ' .. text(now))
  redis.call('ZADD', DURABLE_UNTIL, text(ends), field)
  local expired = redis.call('ZRANGEBYSCORE', DURABLE_UNTIL, '-inf', text(over), 'LIMIT', 0, 20)
  if redis.call('ZCARD', DURABLE_UNTIL) > MAX_DURABLE then
    expired[#expired + 1] = redis.call('ZRANGE', DURABLE_UNTIL, 0, 0)[1]
  end
  if #expired > 0 then
    redis.call('HDEL', DURABLE, unpack(expired))
    redis.call('ZREM', DURABLE_UNTIL, unpack(expired))
  end
end

-- The numbers of a hash, and by how much the clock has been set back since they were written. `fields` are the longest
-- valid durations, by name, or INSTANT. `write` leaves out what is stored so already: no two hashes share a name.
local INSTANT, was = -1, {}
local function read(hash, fields)
  local names, numbers = {}, {}
  for name in pairs(fields) do names[#names + 1] = name end
  local stored = redis.call('HMGET', hash, 'seen', unpack(names))
  local step = step_since(stored[1])
  for i, name in ipairs(names) do
    local value, longest = tonumber(stored[i + 1] or nil), fields[name]
    numbers[name] = longest == INSTANT and instant(value, step) or duration(value, longest)
    was[name] = value
  end
  return numbers, step
end

local function write(hash, numbers)
  local values = {'seen', text(now)}
  for name, number in pairs(numbers) do
    if number ~= was[name] then values[#values + 1], values[#values + 2] = name, text(number) end
  end
  redis.call('HSET', hash, unpack(values))
end

local BACKOFF_FIELDS = {ends = INSTANT, step = LONGEST_BACKOFF, began = INSTANT, claim = INSTANT, agreed = INSTANT,
  bad = MAX_COST, bad_at = INSTANT}

local function save_backoff(backoff)
  write(BACKOFF, backoff)
  save_durable(KNOWN.pool, backoff.ends)
  local kept = math.max(backoff.ends, now) - now + math.max(RESET_AFTER, backoff.step) + LINGER
  redis.call('PEXPIRE', BACKOFF, math.ceil(math.max(kept, MEMORY) / 1000))
end

-- The fleet's backoff from the pool, and whether the process remembers a later end, which then holds: this server was
-- emptied, came back as it was before, or did not get the report. What has changed is written.
local function settle_backoff()
  local backoff, step = read(BACKOFF, BACKOFF_FIELDS)
  local kept, kept_step = durable_until(KNOWN.pool)
  backoff.ends = math.max(backoff.ends, kept)
  local known = instant(now + math.max(0, KNOWN.backoff))
  local given_back = known > math.max(backoff.ends, now) + CLOSE
  if given_back then
    backoff.ends, backoff.began, backoff.claim, backoff.agreed = known, now, 0, 0
    redis.call('HDEL', BACKOFF, 'by')
  end
  if given_back or step ~= 0 or kept_step ~= 0 then save_backoff(backoff) end
  return backoff, given_back
end
