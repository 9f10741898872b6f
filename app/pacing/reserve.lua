-- Reserve the next slot of one queue (one agent in one pool), or say when the caller's turn is.
--
-- ARGV  as `ReserveArguments` of redis_pacer.py has them, which gives their numbers as ARG_...
--
-- Slots never overlap. `tail` is the end of the last one, stored again in case the set is lost. `count` grows by one with
-- every slot: if a process remembers a higher count, this server has lost slots, as a replica does that lagged behind its
-- master. The law is that of law.py, which gives the constants, and which a test compares with this.
--
-- Returns {1, now, begin, end, interval, tail, count, end of the backoff, by how much the clock was set back (negative:
-- forward), 1 if the end of the backoff is from this process, the latency, the least interval by it and by refusals,
-- which of them decided (`least_interval`; 3: the documents of the day are used up), 0}. If none was reserved: 0 in place
-- of the first 1, and the time to the caller's turn as the last.
local DAY = 86400e6

-- If slots are lost so, none is given before the tail.
for set, most in pairs({[SLOTS] = 2 * MAX_SLOTS, [CALLERS] = MAX_ACTIVE, [TURNS] = MAX_ACTIVE, [API_KEYS] = MAX_ACTIVE,
  [LINE] = 20 * MAX_ACTIVE}) do
  if redis.call('ZCARD', set) > most then redis.call('UNLINK', set) end
end

local max_wait, cost = tonumber(ARGV[ARG_MAX_WAIT]), tonumber(ARGV[ARG_COST])
local caller, nonce = ARGV[ARG_CALLER], ARGV[ARG_NONCE]
local key = string.match(caller, '^[^/]*/') or ''
local asks_only = max_wait < 0
local untils, intervals = {}, {}
for i = ARG_WINDOWS, #ARGV, 2 do
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

-- Read the state of the queue. The documents of a day of UTC are kept apart from those of the days beside it.
local day = math.floor(now / DAY)
local spent_field = 'spent' .. day % 2
local stored = redis.call('HMGET', QUEUE, 'tail', 'hold', 'fetched', 'count', 'seen', 'latency', 'recent', 'told',
  'reports', 'run', 'pace', 'apart', 'page_at', 'shortest', 'shortest_until', 'stand_in', spent_field)
local durable = durable_numbers(QUEUE_FIELD, 4)
local clock_step, durable_step = step_since(stored[5]), step_since(durable[4])
local tail = math.max(shifted(stored[1], clock_step), shifted(durable[1], durable_step))
local closed_until = math.max(shifted(stored[2], clock_step), shifted(durable[2], durable_step))
local fetched = instant(stored[3])
local count = math.floor(math.max(duration(stored[4], 1e15), duration(durable[3], 1e15)))
if clock_step == 0 then clock_step = durable_step end
if clock_step ~= 0 then
  -- All instants are by the clock of before. Callers wait for a duration, and go when it is over.
  redis.call('UNLINK', SLOTS, CALLERS, TURNS, API_KEYS, LINE)
  fetched = math.min(fetched, now)
end

-- Learn from the pages that were reported, and raise the intervals to what the pool bears.
local backoff_until, given_back, bad, bad_at = settle_backoff()
local latency, recent = duration(stored[6], LONGEST), duration(stored[7], LONGEST)
local told, reports = math.min(shifted(stored[8], clock_step), now), duration(stored[9], FEW)
local run, apart = shifted(stored[10], clock_step), duration(stored[12], MEAN_OVER)
local page_at = ARGV[ARG_SUCCEEDED] == '1' and now or math.min(shifted(stored[13], clock_step), now)
if latency == 0 then reports = 0 end
latency, recent, apart, told, reports =
  learn(latency, recent, apart, told, reports, tonumber(ARGV[ARG_PAGES]), tonumber(ARGV[ARG_MEAN]))
local timed_out = ARGV[ARG_TIMED_OUT] == '1'
local new_run = timed_out and now >= run
if new_run then latency = math.max(latency, math.min(2 * latency, TIME_OUT)) end
local factor = tonumber(ARGV[ARG_FACTOR])
local least, decided = least_interval(factor, tonumber(ARGV[ARG_LONGEST_BY_LATENCY]), tonumber(ARGV[ARG_CAP]), latency,
  recent, reports, bad, bad_at)
least = math.ceil(least)
for i, own in ipairs(intervals) do intervals[i] = math.max(own, least) end

-- The slots that are not over, by time. If they are lost, one up to the stored tail replaces them.
local begins, ends, owners, last = {}, {}, {}, 0
local function add(go, slot_end, owner)
  last = last + 1
  begins[last], ends[last], owners[last] = go, slot_end, owner
end
local found = redis.call('ZRANGE', SLOTS, 0, -1, 'WITHSCORES')
for i = 1, #found, 2 do
  local slot_end, owner = string.match(found[i], '^(%d+):%w+:(.*)$')
  local go = tonumber(found[i + 1])
  slot_end = tonumber(slot_end)
  if not slot_end or not (go >= 0 and go < slot_end) or slot_end > now + MAX_AHEAD then
    redis.call('ZREM', SLOTS, found[i])
  elseif slot_end > now then
    add(go, slot_end, owner)
  end
end
redis.call('ZREMRANGEBYRANK', SLOTS, 0, -last - 2)
local set_end = last > 0 and ends[last] or 0
if tail > math.max(now, set_end) then
  redis.call('ZADD', SLOTS, text(now), text(tail) .. ':lost:')
  table.insert(begins, 1, now)
  table.insert(ends, 1, tail)
  table.insert(owners, 1, '')
  last = last + 1
end
tail = math.max(tail, set_end)

-- After a failure of the store, callers may still use slots given without it, or slots that this server lost.
local known_end, known_count = instant(now + tonumber(ARGV[ARG_KNOWN_END])), tonumber(ARGV[ARG_KNOWN_COUNT])
local closed_for = tonumber(ARGV[ARG_CLOSED_FOR])
if known_end > now and known_count > count then closed_for = math.max(closed_for, tonumber(ARGV[ARG_CLOSED_IF_BEHIND])) end
if closed_for > 0 then
  closed_until = math.max(closed_until, now + closed_for)
  if known_end > tail then closed_until = math.max(closed_until, known_end) end
end

-- The fetch of robots.txt takes a slot like any document. Its instant is by a process's clock, which may be ahead.
local robots_fetched = instant(ARGV[ARG_ROBOTS_FETCHED])
if robots_fetched > fetched then
  fetched = robots_fetched
  local at = math.min(robots_fetched, now)
  if advance(at, 1) > now then
    at = math.max(at, tail)
    tail = advance(at, 1)
    add(at, tail, '')
    redis.call('ZADD', SLOTS, text(at), text(tail) .. ':robots:')
  end
end

-- The documents that the pool has had today: those of slots that were given today.
local budget = tonumber(ARGV[ARG_BUDGET])
local spent_day, spent = string.match(stored[17] or '', '^(%d+) ([%d.]+)$')
local counts = budget > 0 or tonumber(spent_day) == day
spent = tonumber(spent_day) == day and duration(spent, 1e15) or 0
local used_up_until = 0
if budget > 0 and spent + cost > budget then used_up_until, decided = (day + 1) * DAY, 3 end

-- From here on as law.py. Who is active, this one included.
local interval = interval_at(now)
-- A step of the clock that another key's call has met leaves what is the key's own; '' is when that was written.
if tonumber(redis.call('ZSCORE', CALLERS, '') or 0) > now then redis.call('UNLINK', CALLERS, TURNS) end
for _, set in ipairs({API_KEYS, CALLERS}) do
  redis.call('ZREMRANGEBYSCORE', set, '-inf', text(now))
  redis.call('ZREMRANGEBYSCORE', set, text(now + MAX_AHEAD), '+inf')
end
local key_until, own_until = redis.call('ZSCORE', API_KEYS, key), redis.call('ZSCORE', CALLERS, caller)
local active_keys = redis.call('ZCARD', API_KEYS) + (key_until and 0 or 1)
local active = redis.call('ZCARD', CALLERS) + (own_until and 0 or 1)
local spacing = interval * active_keys
local grace = TURN_GRACE + GRACE_SLOTS * spacing
redis.call('ZREMRANGEBYSCORE', TURNS, '-inf', text(now - grace))
redis.call('ZREMRANGEBYSCORE', LINE, '-inf', text(now - TURN_GRACE - MISSED_SLOTS * spacing))

-- The caller's turns. The first that has come is taken out of the line; the last one gets its number.
local own, due, due_at, latest = 0, nil, now, 0
while own < MAX_OWN do
  local turn = tonumber(redis.call('ZSCORE', TURNS, caller .. ':' .. own) or nil)
  if not turn then break end
  if turn <= now and (not due or turn < due_at) then due, due_at = own, turn end
  latest = math.max(latest, turn)
  own = own + 1
end
if due and not asks_only then
  own = own - 1
  local last_at = redis.call('ZSCORE', TURNS, caller .. ':' .. own)
  for _, set in ipairs({TURNS, LINE}) do
    redis.call('ZADD', set, last_at, caller .. ':' .. due)
    redis.call('ZREM', set, caller .. ':' .. own)
  end
end

-- The horizon: no longer than the shortest max_wait of those that were refused recently.
local shortest, shortest_until = duration(stored[14], MAX_COST), shifted(stored[15], clock_step)
if shortest_until <= now then shortest = MAX_COST end
local most = (active_keys > 1 or factor > 0 and reports > 0) and AHEAD_SLOTS or FAR_SLOTS
local horizon = math.min(math.max(AHEAD_FOR, math.min(most * interval, shortest)), FAR_SLOTS * interval)
local reach = math.max(0, math.min(max_wait, horizon))
local slow = reach < interval

-- The first instant at which the slot fits, and what the caller has that has not begun.
local go, slot_end
local function fit(at)
  go, slot_end = at, advance(at, cost)
  for i = 1, last do
    if slot_end <= begins[i] then break end
    if ends[i] > go then
      go = ends[i]
      slot_end = advance(go, cost)
    end
  end
end
local first = math.max(now, closed_until, backoff_until, used_up_until)
fit(first)
if active_keys > 1 and go - now >= math.max(interval, CALL_TAKES) and not slow then
  -- The slots of a key are apart, so that the others find some between them as soon as they ask.
  for i = last, 1, -1 do
    if string.sub(owners[i], 1, #key) == key then
      fit(math.max(first, begins[i] + active_keys * (ends[i] - begins[i])))
      break
    end
  end
end
local held, next_held = 0, nil
for i = 1, last do
  if begins[i] > now and owners[i] == caller then
    held, next_held = held + ends[i] - begins[i], next_held or begins[i]
  end
end
local blocked, may_go = math.max(now, used_up_until), 0
if last >= MAX_SLOTS then blocked = math.max(blocked, ends[1]) end
local share = math.max(interval, math.floor(math.floor(horizon / active_keys) / active))
if next_held and held + slot_end - go > share then may_go = next_held end

-- How many turns there are up to an instant, without those of late callers, who are no longer expected.
local late = math.max(CALL_TAKES, math.floor(math.min(interval, reach) / 4))
local function expected(at) return redis.call('ZCOUNT', LINE, '(' .. text(now - late), at) end

-- The first instant from `start` on, or one soon after, where the turns of a set leave a gap, from the score `after` on.
local function gap(set, start, apart, after)
  local function is_full(places)
    return redis.call('ZCOUNT', set, after, '(' .. text(start + places * apart)) >= places
  end
  local low, high = 0, 1
  while is_full(high) do low, high = high, 2 * high end
  while high - low > 1 do
    local middle = math.floor((low + high) / 2)
    if is_full(middle) then low = middle else high = middle end
  end
  return start + low * apart
end

-- Behind the others of its key, and where no other key's turn is. Who was due takes the first gap. The first of a key's
-- turns is not put off for those of others.
local function place(opens)
  if due then return gap(LINE, opens, interval, text(opens)) end
  local start = gap(TURNS, opens, spacing, '(' .. text(now - late))
  if own > 0 then start = math.max(start, latest + active * spacing) end
  local turn = gap(LINE, start, interval, text(start))
  return start == opens and turn >= start + spacing and start or turn
end

-- A caller that is not due gets a slot that is near, or one for which nobody is expected.
local near = math.min(NEAR_SLOTS * interval, math.floor(reach / 2))
local within = math.min(max_wait, due and FAR_SLOTS * interval or reach)
local reserved = go - now <= within and blocked <= now
  and (go - now < near or may_go <= now and (due or expected(text(go - near)) == 0))
local stand_in = shifted(stored[16], clock_step)
local retry, back = 0, slot_end
if reserved then
  count, tail = count + 1, math.max(tail, slot_end)
  redis.call('ZADD', SLOTS, text(go), text(slot_end) .. ':' .. nonce .. ':' .. caller)
else
  local opens = math.max(blocked, may_go, go - reach)
  -- Where no two slots are in reach and turns were missed, one without a turn stands in for who may not come.
  local missed = expected('+inf') < redis.call('ZCARD', LINE)
  local is_next = expected(text(opens)) <= (missed and 1 or 0)
  local stands_in = slow and missed and is_next and not due and stand_in < opens and not asks_only
  if stands_in then stand_in = opens + math.max(math.floor(reach * 3 / 4), late) end
  local turn = stands_in and stand_in or due and is_next and opens or place(opens)
  turn = math.max(turn, now + math.floor(math.min(interval, reach) / 4))
  retry = math.min(turn - now, LONGEST_RETRY)
  back, slot_end = now + retry, 0
  if not asks_only then
    if not stands_in and own < MAX_OWN and redis.call('ZCARD', TURNS) < MAX_ACTIVE then
      for _, set in ipairs({TURNS, LINE}) do redis.call('ZADD', set, text(turn), caller .. ':' .. own) end
    end
    if max_wait <= shortest then shortest, shortest_until = max_wait, back + grace end
  end
end
if not asks_only then
  for set, member in pairs({[API_KEYS] = key, [CALLERS] = caller}) do
    local before = redis.call('ZSCORE', set, member)
    if before or redis.call('ZCARD', set) < MAX_ACTIVE then
      redis.call('ZADD', set, text(math.max(tonumber(before or 0), back + grace)), member)
    end
  end
end
redis.call('ZADD', CALLERS, text(now), '')
if new_run then run = math.max(now, tail) + 1e6 end

redis.call('HSET', QUEUE, 'tail', text(tail), 'hold', text(closed_until), 'fetched', text(fetched),
  'shortest', text(shortest), 'shortest_until', text(shortest_until), 'stand_in', text(stand_in), 'count', text(count),
  'seen', text(now), 'pace', text(reserved and interval_at(go) or duration(stored[11], MAX_COST)))
if counts then
  redis.call('HSET', QUEUE, spent_field, string.format('%.0f %.6f', day, spent + (reserved and cost or 0)))
end
if timed_out or told == now or page_at == now or clock_step ~= 0 then
  redis.call('HSET', QUEUE, 'latency', text(latency), 'recent', text(recent), 'apart', text(apart), 'told', text(told),
    'reports', text(reports), 'run', text(run), 'page_at', text(page_at))
end
save_durable_queue(tail, closed_until, count)
local expiry = math.ceil((math.max(tail, closed_until, back, now) - now + LINGER) / 1000)
for i = 4, 9 do redis.call('PEXPIRE', KEYS[i], expiry) end
if counts then redis.call('PEXPIRE', QUEUE, math.max(expiry, math.ceil(((day + 2) * DAY - now) / 1000))) end
return {reserved and 1 or 0, now, go, slot_end, interval_at(go), tail, count, backoff_until, clock_step,
  given_back and 1 or 0, math.floor(latency), least, decided, retry}
