-- Reserve the next free slot of one lane: an agent's turns at one origin.
--
-- ARGV  3 longest wait   4 cost, in documents   5 caller   6 nonce   7 not before, an instant or 0
--       8 for so long nothing is given away, or 0   9 for so long nothing is where slots were lost
--       10, 11 the time to the tail and the count as this process remembers them, or 0
--       12 when robots.txt was fetched last, or 0   13.. spans: until (an instant), interval; the last is for ever
--
-- A slot is taken from the instant to go at up to its end, which is where the pace has made up for its cost; slots
-- never overlap.
--
-- The set of slots is the truth. `tail` is its last end, kept beside it in case it is lost, and before `hint` nothing is
-- free, which spares looking at every slot. `count` grows by one with every slot: a caller who
-- remembers a higher one tells that the server has lost some, as a replica does that lagged behind its master.
--
-- Returns {1, now, go, end, interval, tail, count, end of the back-off, by how much the clock was set back}, with 0, and
-- 0 for the end, where that is too late.
local ACTIVE = 10e6          -- a caller who last asked longer ago has gone
local MOST_CALLERS = 1000
local MOST_SLOTS = 10000
local STEPS = 500            -- slots that are looked at for a gap
local NEAR = 5               -- intervals: a gap so near is anybody's, since it is nearly lost
local NEWCOMERS = 10         -- one slot in so many is left for who has not asked yet

if redis.call('ZCARD', SLOTS) > 2 * MOST_SLOTS then redis.call('UNLINK', SLOTS) end
if redis.call('ZCARD', CALLERS) > 2 * MOST_CALLERS then redis.call('UNLINK', CALLERS) end
if redis.call('HLEN', AHEAD) > 2 * MOST_SLOTS then redis.call('UNLINK', AHEAD) end

local longest, cost, caller, nonce = tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5], ARGV[6]
local not_before = instant(ARGV[7])
local untils, intervals = {}, {}
for at = 13, #ARGV, 2 do
  untils[#untils + 1], intervals[#intervals + 1] = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
end
untils[#untils] = math.huge

-- Where the pace has made up for `documents`, each stretch of time counting at its own interval.
local function advance(at, documents)
  local latest = at + LONGEST
  for place, stop in ipairs(untils) do
    if at < stop then
      local room = (stop - at) / intervals[place]
      if documents <= room then return math.min(math.ceil(at + documents * intervals[place]), latest) end
      documents, at = documents - room, stop
    end
  end
end

local function interval_at(at)
  for place, stop in ipairs(untils) do
    if at < stop then return intervals[place] end
  end
end

-- The end of a slot; one that cannot be ours is taken out, and has none.
local function ending(slot, go)
  go = tonumber(go)
  local ends = tonumber(string.match(slot, '^(%d+):%w+:'))
  if ends and go and go >= 0 and go < ends and ends <= now + FARTHEST then return ends, go end
  redis.call('ZREM', SLOTS, slot)
  return nil
end

local held = redis.call('HMGET', LANE, 'tail', 'hint', 'hold', 'fetched', 'counted', 'count', 'seen')
local second = kept(LANE_FIELD, 4)
local step, second_step = step_since(held[7]), step_since(second[4])
local tail, hint, fetched, counted = 0, instant(held[2]), instant(held[4]), instant(held[5])
local lost = math.max(moved(held[1], step), moved(second[1], second_step))
local hold = math.max(moved(held[3], step), moved(second[2], second_step))
local function number(value)
  local it = math.floor(tonumber(value) or 0)
  return it >= 0 and it < 1e15 and it or 0
end
local count = math.max(number(held[6]), number(second[3]))
step = math.max(step, second_step)
if step > 0 then
  -- Every slot is of the old clock. Who was given one waits for a length of time, and goes when that is over.
  redis.call('UNLINK', SLOTS, CALLERS, AHEAD)
  hint, fetched, counted = 0, math.min(fetched, now), now
end

local last
for attempt = 1, 20 do
  local found = redis.call('ZREVRANGE', SLOTS, 0, 0, 'WITHSCORES')
  if #found == 0 then break end
  local ends, go = ending(found[1], found[2])
  if ends then
    tail, last = ends, go
    break
  end
  if attempt == 20 then redis.call('UNLINK', SLOTS) end
end
-- Where the slots are lost, one takes the place of them all.
if not last and lost > now then
  tail, last, hint = lost, now, lost
  redis.call('ZADD', SLOTS, text(now), text(lost) .. ':lost:')
end

-- After trouble with the store: others may still go by what they were given meanwhile, or by what this server lost.
local remembered, remembered_count = instant(now + tonumber(ARGV[10])), tonumber(ARGV[11])
local closed = tonumber(ARGV[8])
if remembered > now and remembered_count > count then closed = math.max(closed, tonumber(ARGV[9])) end
if closed > 0 then
  hold = math.max(hold, now + closed)
  if remembered > tail then hold = math.max(hold, remembered) end
end

hint = math.min(hint, math.max(tail, now))

-- The fetch of robots.txt is a visit like any other. Its instant is a caller's, whose clock may be ahead of this one.
local asked_at = instant(ARGV[12])
if asked_at > fetched then
  fetched = asked_at
  local at = math.min(asked_at, now)
  if advance(at, 1) > now then
    at = math.max(at, tail)
    if hint >= tail then hint = advance(at, 1) end
    tail, last = advance(at, 1), at
    redis.call('ZADD', SLOTS, text(at), text(tail) .. ':robots:')
  end
end

-- Slots whose time has come are no longer ahead of their callers; all but the last of them are over.
if not last or last <= now then
  redis.call('UNLINK', AHEAD)
  redis.call('ZREMRANGEBYRANK', SLOTS, 0, -2)
  counted = now
else
  local due = redis.call('ZRANGEBYSCORE', SLOTS, '(' .. text(counted), text(now), 'WITHSCORES', 'LIMIT', 0, 200)
  for at = 1, #due, 2 do
    local ends, go = ending(due[at], due[at + 1])
    local whose = ends and string.match(due[at], '^%d+:%w+:(.+)$')
    if whose then
      local left = (tonumber(redis.call('HGET', AHEAD, whose)) or 0) - 1
      if left >= 1 and left <= MOST_SLOTS then
        redis.call('HSET', AHEAD, whose, text(left))
      else
        redis.call('HDEL', AHEAD, whose)
      end
    end
    if ends then
      counted = go
      redis.call('ZREMRANGEBYSCORE', SLOTS, '-inf', '(' .. text(go))
    end
  end
end

redis.call('ZREMRANGEBYSCORE', CALLERS, '-inf', '(' .. text(now - ACTIVE))
if redis.call('ZCARD', CALLERS) < MOST_CALLERS or redis.call('ZSCORE', CALLERS, caller) then
  redis.call('ZADD', CALLERS, text(now), caller)
end
local active = redis.call('ZCARD', CALLERS)

local backs_off_until = back_off_ends()
local open = math.max(now, hold, backs_off_until)
local start = math.max(open, not_before)

-- The first instant from `at` on where the slot fits, and whether a gap was passed over that was too small for it.
-- With `lined_up`, an instant in the middle of a gap is moved back, so that whole slots fit between it and the last.
local function first_gap(at, lined_up)
  local passed, from = false, text(at)
  local ends = tail
  for attempt = 1, 20 do
    local before = redis.call('ZREVRANGEBYSCORE', SLOTS, from, '-inf', 'WITHSCORES', 'LIMIT', 0, 1)
    local known = #before == 0 and 0 or ending(before[1], before[2])
    if known then
      ends = known
      break
    end
  end
  if ends < at and lined_up then
    local left = math.max(ends, start)
    local room = advance(left, cost) - left
    at = left + math.max(0, math.floor((at - left) / room)) * room
  end
  at = math.max(at, ends)
  local later = redis.call('ZRANGEBYSCORE', SLOTS, '(' .. from, '+inf', 'WITHSCORES', 'LIMIT', 0, STEPS)
  for place = 1, #later, 2 do
    local ends, go = ending(later[place], later[place + 1])
    if ends then
      if advance(at, cost) <= go then return at, passed end
      passed = passed or at < go
      at = math.max(at, ends)
    end
  end
  if #later == 2 * STEPS then return math.max(at, tail), true end
  return at, passed
end

-- Who has slots ahead of him leaves as many between them as others ask here, who fill the gaps, and a few for who may
-- come. But a gap that is so near that nobody else may come in time is his, too.
local from = math.max(start, hint)
local go, passed = first_gap(from, false)
local first = start <= math.max(hint, open)
local ahead = tonumber(redis.call('HGET', AHEAD, caller)) or 0
if ahead >= 1 and ahead <= 2 * MOST_SLOTS and not_before <= open then
  local interval = interval_at(open)
  if go > open + (NEAR + active) * interval then
    local turns = ahead * active
    if active == 1 then turns = ahead + 1 + math.floor((ahead + 1) / NEWCOMERS) end
    local fair = open + turns * interval
    if fair > go then
      go, first = first_gap(fair, true), false
    end
  end
else
  ahead = 0
end

local given = go - now <= longest and redis.call('ZCARD', SLOTS) < MOST_SLOTS
local over = 0
if given then
  over = advance(go, cost)
  count = count + 1
  redis.call('ZADD', SLOTS, text(go), text(over) .. ':' .. nonce .. ':' .. caller)
  if go > counted then
    ahead = (tonumber(redis.call('HGET', AHEAD, caller)) or 0) + 1
    redis.call('HSET', AHEAD, caller, ahead >= 1 and ahead <= MOST_SLOTS and text(ahead) or '1')
  end
  if first and not passed then hint = over end
  tail = math.max(tail, over)
end

redis.call('HSET', LANE, 'tail', text(tail), 'hint', text(hint), 'hold', text(hold), 'fetched', text(fetched),
  'counted', text(counted), 'count', text(count), 'seen', text(now))
keep_lane(tail, hold, count)
local lingers = math.ceil((math.max(tail, hold, now) - now + LINGER) / 1000)
for place = 4, 7 do redis.call('PEXPIRE', KEYS[place], lingers) end
return {given and 1 or 0, now, go, over, interval_at(go), tail, count, backs_off_until, step}
