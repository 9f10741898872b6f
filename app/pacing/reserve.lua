-- Reserve the next free slot of one queue: one agent in one pool.
--
-- ARGV  7 longest wait   8 cost, in documents   9 caller: "<key id>/<name>", without API keys "<name>"
--       10 nonce
--       11 give no slot for so long, or 0   12 give none for so long if slots were lost
--       13, 14 the time to the end of the queue and its count, as this process remembers them, or 0
--       15 when robots.txt was last fetched, or 0
--       16 how many pages were reported to the process of late   17 the mean of their times   18 1 if one timed out
--       19 1 if one was a 2xx
--       20 PACE_LATENCY   21 the longest interval that latency sets   22 PACE_CAP
--       23 documents a day, or 0
--       24.. the windows: until (an instant), interval; the last one never ends
--
-- A slot lasts from the instant at which it begins to its end, from which the pace permits the next document. Slots
-- never overlap.
--
-- The set of slots is the record. `tail` is the end of the last slot, stored again in case the set is lost. No slot is
-- free before `hint`, so the search starts there. `count` grows by one with every slot: if a process remembers a higher
-- count, this server has lost slots, as a replica does that lagged behind its master.
--
-- Returns {1, now, begin, end, interval, tail, count, end of the backoff, by how much the clock was set back (negative:
-- forward), 1 if the end of the backoff is from this process, the latency, the least interval by it and by refusals,
-- which of them decided (`least_interval`; 3: the documents of the day are used up)}. If the slot is too far ahead: 0 in place of the first 1, and 0 as its end.
local CALLER_EXPIRY = 10e6   -- a caller that last asked longer ago is gone
local MAX_CALLERS = 1000
local MAX_SEARCH = 500       -- slots that are searched for a gap, after the first FEW
local FEW = 20
local NEAR = 5               -- intervals: a gap this near is open to all, or it would be lost
local NEWCOMERS = 10         -- one slot in 10 is left for callers that have not asked yet
local PERIOD = 20            -- intervals: one slot in this time is left for keys that have none ahead of it
local MAX_DEBT = 20          -- intervals that a key waits at most for having had more than its share
local SOME_SLOTS = 60        -- searched for a gap within the share of a key: the first, and those after its latest one
local LAST_SLOTS = 30        -- of the queue, searched if there is none
local DAY = 86400e6
local AHEAD_FOR = 2e6        -- slots are given so far ahead at most, or
local AHEAD_SLOTS = 8        -- so many intervals

if redis.call('ZCARD', SLOTS) > 2 * MAX_SLOTS then redis.call('UNLINK', SLOTS) end
for _, asking in ipairs({CALLERS, API_KEYS}) do
  if redis.call('ZCARD', asking) > 2 * MAX_CALLERS then redis.call('UNLINK', asking) end
end
if redis.call('HLEN', AHEAD) > 2 * MAX_SLOTS then redis.call('UNLINK', AHEAD) end

local max_wait, cost, caller, nonce = tonumber(ARGV[7]), tonumber(ARGV[8]), ARGV[9], ARGV[10]
local key = key_of(caller)
local untils, intervals = {}, {}
for i = 24, #ARGV, 2 do
  untils[#untils + 1], intervals[#intervals + 1] = tonumber(ARGV[i]), tonumber(ARGV[i + 1])
end
untils[#untils] = math.huge

-- The instant from which the pace permits another document after `documents` were fetched at `at`.
local function advance(at, documents)
  local latest = at + MAX_COST
  for i, window_end in ipairs(untils) do
    if at < window_end then
      local room = (window_end - at) / intervals[i]
      if documents <= room then return math.min(math.ceil(at + documents * intervals[i]), latest) end
      documents, at = documents - room, window_end
    end
  end
end

local function interval_at(at)
  for i, window_end in ipairs(untils) do
    if at < window_end then return intervals[i] end
  end
end

-- The end and the beginning of a slot; nil for a member that is not valid, which is deleted.
local function slot_times(slot, go)
  go = tonumber(go)
  local ends = tonumber(string.match(slot, '^(%d+):%w+:'))
  if ends and go and go >= 0 and go < ends and ends <= now + MAX_AHEAD then return ends, go end
  redis.call('ZREM', SLOTS, slot)
  return nil
end

-- Read the state of the queue.
local stored = redis.call('HMGET', QUEUE, 'tail', 'hint', 'hold', 'fetched', 'counted', 'count', 'seen', 'latency',
  'recent', 'told', 'reports', 'run', 'pace', 'day', 'spent', 'apart', 'page_at')
local durable = durable_numbers(QUEUE_FIELD, 4)
local clock_step, durable_step = step_since(stored[7]), step_since(durable[4])
local tail, hint, fetched, counted = 0, instant(stored[2]), instant(stored[4]), instant(stored[5])
local stored_tail = math.max(shifted(stored[1], clock_step), shifted(durable[1], durable_step))
local closed_until = math.max(shifted(stored[3], clock_step), shifted(durable[2], durable_step))
local function valid_count(value)
  local number = math.floor(tonumber(value) or 0)
  return number >= 0 and number < 1e15 and number or 0
end
local count = math.max(valid_count(stored[6]), valid_count(durable[3]))
if clock_step == 0 then clock_step = durable_step end
if clock_step ~= 0 then
  -- All slots are by the clock of before. Their callers wait for a duration, and go when it is over.
  redis.call('UNLINK', SLOTS, CALLERS, AHEAD, API_KEYS)
  hint, fetched, counted = 0, math.min(fetched, now), now
end

-- Learn from the pages that were reported, and raise the intervals to what the pool bears.
local backoff_until, given_back, bad, bad_at = settle_backoff()
local latency, recent = duration(stored[8], LONGEST), duration(stored[9], LONGEST)
local told, reports = math.min(shifted(stored[10], clock_step), now), math.min(duration(stored[11], FEW), FEW)
local run = shifted(stored[12], clock_step)
local apart = duration(stored[16], MEAN_OVER)
local page_at = ARGV[19] == '1' and now or math.min(shifted(stored[17], clock_step), now)
if latency == 0 then reports = 0 end
latency, recent, apart, told, reports =
  learn(latency, recent, apart, told, reports, tonumber(ARGV[16]), tonumber(ARGV[17]))
local timed_out = ARGV[18] == '1'
if timed_out and now >= run then latency = math.max(latency, math.min(2 * latency, TIME_OUT)) end
local factor = tonumber(ARGV[20])
local least, decided = least_interval(factor, tonumber(ARGV[21]), tonumber(ARGV[22]), latency, recent, reports, bad, bad_at)
least = math.ceil(least)
for i, own in ipairs(intervals) do intervals[i] = math.max(own, least) end

local last
for attempt = 1, 20 do
  local found = redis.call('ZREVRANGE', SLOTS, 0, 0, 'WITHSCORES')
  if #found == 0 then break end
  local ends, go = slot_times(found[1], found[2])
  if ends then
    tail, last = ends, go
    break
  end
  if attempt == 20 then redis.call('UNLINK', SLOTS) end
end
-- If the slots are lost, one slot up to the stored tail replaces them all.
if not last and stored_tail > now then
  tail, last, hint = stored_tail, now, stored_tail
  redis.call('ZADD', SLOTS, text(now), text(stored_tail) .. ':lost:')
end

-- After a failure of the store, callers may still use slots given without it, or slots that this server lost.
local known_end, known_count = instant(now + tonumber(ARGV[13])), tonumber(ARGV[14])
local closed_for = tonumber(ARGV[11])
if known_end > now and known_count > count then closed_for = math.max(closed_for, tonumber(ARGV[12])) end
if closed_for > 0 then
  closed_until = math.max(closed_until, now + closed_for)
  if known_end > tail then closed_until = math.max(closed_until, known_end) end
end

hint = math.min(hint, math.max(tail, now))

-- The fetch of robots.txt takes a slot like any document. Its instant is by a process's clock, which may be ahead.
local robots_fetched = instant(ARGV[15])
if robots_fetched > fetched then
  fetched = robots_fetched
  local at = math.min(robots_fetched, now)
  if advance(at, 1) > now then
    at = math.max(at, tail)
    if hint >= tail then hint = advance(at, 1) end
    tail, last = advance(at, 1), at
    redis.call('ZADD', SLOTS, text(at), text(tail) .. ':robots:')
  end
end

-- Slots that have begun no longer count as ahead of their callers; all but the last of them are over.
if not last or last <= now then
  redis.call('UNLINK', AHEAD)
  redis.call('ZREMRANGEBYRANK', SLOTS, 0, -2)
  counted = now
else
  local begun = redis.call('ZRANGEBYSCORE', SLOTS, '(' .. text(counted), text(now), 'WITHSCORES', 'LIMIT', 0, 200)
  for i = 1, #begun, 2 do
    local ends, go = slot_times(begun[i], begun[i + 1])
    local owner = ends and string.match(begun[i], '^%d+:%w+:(.+)$')
    if owner then change_ahead(owner, -1) end
    if ends then
      counted = go
      redis.call('ZREMRANGEBYSCORE', SLOTS, '-inf', '(' .. text(go))
    end
  end
end

-- Note that a caller or a key asks; return how many of its kind did of late.
local function note_asking(asking, who, expiry)
  redis.call('ZREMRANGEBYSCORE', asking, '-inf', '(' .. text(now - expiry))
  if redis.call('ZCARD', asking) < MAX_CALLERS or redis.call('ZSCORE', asking, who) then
    redis.call('ZADD', asking, text(now), who)
  end
  return redis.call('ZCARD', asking)
end

local open = math.max(now, closed_until, backoff_until)
local interval = interval_at(open)
-- Slots that were given do not move. So that the pace follows soon, they are not given far ahead.
if factor > 0 and reports > 0 then max_wait = math.min(max_wait, math.max(AHEAD_FOR, AHEAD_SLOTS * interval)) end

local active, active_keys = note_asking(CALLERS, caller, CALLER_EXPIRY), 1
if key then
  -- A step of the clock that another key's call has met leaves callers of the future.
  redis.call('ZREMRANGEBYSCORE', CALLERS, '(' .. text(now), '+inf')
  active_keys = note_asking(API_KEYS, key, CALLER_EXPIRY + PERIOD * interval)
end

-- The end and the beginning of the slot that begins at `at`, or else of the last one before it; 0 if there is none.
local function slot_before(at)
  for attempt = 1, 20 do
    local before = redis.call('ZREVRANGEBYSCORE', SLOTS, text(at), '-inf', 'WITHSCORES', 'LIMIT', 0, 1)
    if #before == 0 then return 0, 0 end
    local ends, go = slot_times(before[1], before[2])
    if ends then return ends, go, before[1] end
  end
  return tail, tail
end

-- The first instant from `at` on at which the slot fits, and whether a gap before it was too small.
-- With `aligned`, an instant within a gap is moved back, so that whole slots fit between it and the slot before.
local function first_gap(at, aligned)
  local passed, from = false, text(at)
  local ends = slot_before(at)
  if ends < at and aligned then
    local left = math.max(ends, open)
    local room = advance(left, cost) - left
    at = left + math.max(0, math.floor((at - left) / room)) * room
  end
  at = math.max(at, ends)
  from = '(' .. from
  for _, limit in ipairs({FEW, MAX_SEARCH}) do
    local later = redis.call('ZRANGEBYSCORE', SLOTS, from, '+inf', 'WITHSCORES', 'LIMIT', 0, limit)
    for i = 1, #later, 2 do
      local ends, go = slot_times(later[i], later[i + 1])
      if ends then
        if advance(at, cost) <= go then return at, passed end
        passed = passed or at < go
        at = math.max(at, ends)
      end
    end
    if #later < 2 * limit then return at, passed end
    from = later[#later]
  end
  return math.max(at, tail), true
end

-- The first instant from `at` on at which the slot fits and its key is within its share: a slot of the key that took a
-- time T is followed by T x (active keys - 1) without one, and between the slots of one PERIOD and those of the next,
-- one document is left for a key that has no slot ahead of it. Only slots before that instant count, so what a key has
-- booked far ahead keeps neither it nor another caller of it from a gap that is nearer.
local function gap_of_key(at)
  -- `before` is when the slot before the gap began, and `due` when the key may have its next slot.
  local ends, before, due, ahead, skipping = open, open, open, false, false

  local function is_new_period(first, second)
    local period = PERIOD * interval
    return math.floor(second / period) > math.floor(first / period)
  end

  local function fitting(limit)
    local gap = ends
    if ahead and is_new_period(before, math.max(gap, at, due)) then gap = gap + interval end
    local from, room = math.max(at, due), advance(gap, cost) - gap
    if from > gap then gap = gap + math.floor((from - gap) / room) * room end
    if ahead and limit < math.huge and is_new_period(gap, limit) then limit = limit - interval end
    return advance(gap, cost) <= limit and gap or nil
  end

  local function pass(slot, slot_end, slot_go)
    if string.find(slot, ':' .. key, 1, true) then
      local begin = math.max(slot_go, open)
      local took = slot_end - begin
      local rest = math.min(math.max(due, begin) + took * active_keys - slot_end, MAX_DEBT * interval)
      due, ahead = slot_end + math.max(rest, took * (active_keys - 1)), ahead or slot_go > now
    end
    ends, before = math.max(ends, slot_end), slot_go
  end

  local function search(slots, first, last, step)
    for i = first, last, step do
      local slot_end, slot_go = slot_times(slots[i], slots[i + 1])
      if slot_end then
        if skipping then ends, before, due, skipping = math.max(ends, slot_go), slot_go, slot_go, false end
        local gap = slot_go > ends and fitting(slot_go)
        if gap then return gap end
        pass(slots[i], slot_end, slot_go)
      end
    end
  end

  local slot_end, slot_go, slot = slot_before(open)
  if slot_end > open then pass(slot or '', slot_end, slot_go) end
  local slots = redis.call('ZRANGEBYSCORE', SLOTS, '(' .. text(open), '+inf', 'WITHSCORES', 'LIMIT', 0, SOME_SLOTS)
  local gap = search(slots, 1, #slots - 1, 2)
  local latest = instant(redis.call('HGET', AHEAD, key .. '/'))
  if not gap and #slots == 2 * SOME_SLOTS then
    skipping = latest > before
    ahead = ahead or skipping
    local from = skipping and text(latest) or slots[#slots]
    slots = redis.call('ZRANGEBYSCORE', SLOTS, from, '+inf', 'WITHSCORES', 'LIMIT', 0, SOME_SLOTS)
    gap = search(slots, 1, #slots - 1, 2)
  end
  if not gap and #slots == 2 * SOME_SLOTS then
    skipping, ahead = true, true
    slots = redis.call('ZREVRANGE', SLOTS, 0, LAST_SLOTS - 1, 'WITHSCORES')
    gap = search(slots, #slots - 1, 1, -2)
  end
  if skipping then ends = math.max(ends, tail) end
  return gap or fitting(math.huge)
end

-- A caller that has slots ahead leaves gaps between them: one for each other active caller, and a few for newcomers.
-- A gap that is so near that no other caller may come in time is open to it, too. With API keys, that is so between the
-- callers of a key, in the share of the key.
local go, passed = first_gap(math.max(open, hint), false)
local first_free, from_hint = go, true

-- How many slots a caller, or a key, has ahead.
local function slots_ahead(owner)
  local ahead = tonumber(redis.call('HGET', AHEAD, owner)) or 0
  return ahead >= 1 and ahead <= 2 * MAX_SLOTS and ahead or 0
end

local ahead = slots_ahead(caller)
if ahead > 0 and go > open + (NEAR + active) * interval then
  local skipped = ahead * active
  if active == 1 then skipped = ahead + 1 + math.floor((ahead + 1) / NEWCOMERS) end
  local fair = open + skipped * active_keys * interval
  if fair > go then
    go, from_hint = first_gap(fair, true), false
  end
end

local room = MAX_SLOTS - redis.call('ZCARD', SLOTS)
local ahead_of_key = key and slots_ahead(key) or 0
if ahead_of_key > 0 then
  room = math.min(room, MAX_SLOTS / (active_keys + 1) - ahead_of_key)
  local near = (NEAR + active_keys) * interval
  if go > open + near then
    go, from_hint = gap_of_key(go), false
    -- A refused caller is to come back when the first gap is near, and so open to it.
    if go - now > max_wait then go = math.min(go, first_free + math.max(0, max_wait - near)) end
  end
end

-- The documents that the pool has had today, a day of UTC: those of slots that were given today.
local budget, day = tonumber(ARGV[23]), math.floor(now / DAY)
local counts = budget > 0 or tonumber(stored[14]) == day
local spent = tonumber(stored[14]) == day and duration(stored[15], 1e15) or 0
local used_up = budget > 0 and spent + cost > budget
if used_up then go, decided = math.max(go, (day + 1) * DAY), 3 end

local reserved = go - now <= max_wait and room >= 1 and not used_up
local slot_end = 0
if reserved then
  slot_end = advance(go, cost)
  count = count + 1
  redis.call('ZADD', SLOTS, text(go), text(slot_end) .. ':' .. nonce .. ':' .. caller)
  if go > counted then change_ahead(caller, 1) end
  if key then
    local latest = instant(redis.call('HGET', AHEAD, key .. '/'))
    redis.call('HSET', AHEAD, key .. '/', text(math.max(go, latest)))
  end
  if from_hint and not passed then hint = slot_end end
  tail = math.max(tail, slot_end)
end
if timed_out and now >= run then run = math.max(now, tail) + 1e6 end

redis.call('HSET', QUEUE, 'tail', text(tail), 'hint', text(hint), 'hold', text(closed_until),
  'fetched', text(fetched), 'counted', text(counted), 'count', text(count), 'seen', text(now),
  'pace', text(reserved and interval_at(go) or duration(stored[13], MAX_COST)))
if counts then
  redis.call('HSET', QUEUE, 'day', text(day), 'spent', string.format('%.6f', spent + (reserved and cost or 0)))
end
if timed_out or told == now or page_at == now or clock_step ~= 0 then
  redis.call('HSET', QUEUE, 'latency', text(latency), 'recent', text(recent), 'apart', text(apart), 'told', text(told),
    'reports', text(reports), 'run', text(run), 'page_at', text(page_at))
end
save_durable_queue(tail, closed_until, count)
local expiry = math.ceil((math.max(tail, closed_until, now) - now + LINGER) / 1000)
for i = 4, 8 do redis.call('PEXPIRE', KEYS[i], expiry) end
if counts then redis.call('PEXPIRE', QUEUE, math.max(expiry, math.ceil(((day + 1) * DAY - now) / 1000))) end
local first = reserved and 1 or 0
return {first, now, go, slot_end, interval_at(go), tail, count, backoff_until, clock_step, given_back and 1 or 0,
  math.floor(latency), least, decided}
