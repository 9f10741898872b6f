-- Reserve the next slot of one queue (one agent in one pool), or say when the caller's turn is. ASK is `Ask` of
-- redis_pacer.py, and the reply is `Reply`.
-- Slots never overlap. `tail` is the end of the last one, stored again in case the set is lost. `count` grows by one with
-- every slot: if a process remembers a higher count, this server has lost slots, as a replica does that lagged behind its
-- master. The law is that of law.py, which gives the constants, and which a test compares with this.
local DAY = 86400e6

-- The instant from which the pace permits another document after `documents` were fetched at `at`.
local windows = ASK.windows
windows[#windows][1] = math.huge
local function advance(at, documents)
  local latest = at + MAX_COST
  for _, window in ipairs(windows) do
    if at < window[1] then
      local room = (window[1] - at) / window[2]
      if documents <= room then return math.min(math.ceil(at + documents * window[2]), latest) end
      documents, at = documents - room, window[1]
    end
  end
end

local function interval_at(at)
  for _, window in ipairs(windows) do
    if at < window[1] then return window[2] end
  end
end

-- Read the state of the queue.
local QUEUE_FIELDS = {tail = INSTANT, hold = INSTANT, fetched = INSTANT, count = 1e15, steps = 1e15, latency = LONGEST,
  recent = LONGEST, apart = MEAN_OVER, told = INSTANT, reports = FEW, page_at = INSTANT, run = INSTANT, pace = MAX_COST,
  shortest = MAX_COST, shortest_until = INSTANT, stand_in = INSTANT}
local queue, clock_step = read(QUEUE, QUEUE_FIELDS)
local kept, kept_step = durable_until(KNOWN.queue)
if queue.tail == 0 then queue.hold = math.max(queue.hold, kept) end
if clock_step == 0 then clock_step = kept_step end
if clock_step ~= 0 then
  -- All instants are by the clock of before. Callers wait for a duration, and go when it is over.
  redis.call('UNLINK', SLOTS, API_KEYS, LINE)
  queue.steps = queue.steps + 1
end
-- What is a key's own may be from before a step that another key's call has met.
if tonumber(redis.call('ZSCORE', CALLERS, '') or 0) ~= queue.steps then redis.call('UNLINK', CALLERS, TURNS) end

-- Learn from the pages that were reported, and raise the intervals to what the pool bears.
local backoff, given_back = settle_backoff()
learn(queue, ASK.pages, ASK.mean)
if ASK.succeeded then queue.page_at = now end
local new_run = ASK.timed_out and now >= queue.run
if new_run then queue.latency = math.max(queue.latency, math.min(2 * queue.latency, TIME_OUT)) end
local least, decided = least_interval(queue, backoff, ASK.factor, ASK.longest_by_latency, ASK.cap)
for _, window in ipairs(windows) do window[2] = math.max(window[2], least) end

-- The slots that are not over, by time. If they are lost, one up to the stored tail replaces them.
local slots = {}
local found = redis.call('ZRANGE', SLOTS, 0, -1, 'WITHSCORES')
for i = 1, #found, 2 do
  local slot_end, owner = string.match(found[i], '^(%d+):%w+:(.*)$')
  local go = tonumber(found[i + 1])
  slot_end = tonumber(slot_end)
  if slot_end and go >= 0 and go < slot_end and slot_end > now and slot_end <= now + MAX_AHEAD then
    slots[#slots + 1] = {go = go, slot_end = slot_end, owner = owner}
  else
    redis.call('ZREM', SLOTS, found[i])
  end
end
local set_end = #slots > 0 and slots[#slots].slot_end or 0
if queue.tail > math.max(now, set_end) then
  redis.call('ZADD', SLOTS, text(now), text(queue.tail) .. ':lost:')
  table.insert(slots, 1, {go = now, slot_end = queue.tail, owner = ''})
end
queue.tail = math.max(queue.tail, set_end)

-- After a failure of the store, callers may still use slots given without it, or slots that this server lost.
local known_end, closed_for = instant(now + ASK.known_end), ASK.closed_for
if known_end > now and ASK.known_count > queue.count then closed_for = math.max(closed_for, ASK.closed_if_behind) end
if closed_for > 0 then
  queue.hold = math.max(queue.hold, now + closed_for, known_end > queue.tail and known_end or 0)
end

-- The fetch of robots.txt takes a slot like any document. Its instant is by a process's clock, which may be ahead.
local robots_fetched = instant(ASK.robots_fetched)
if robots_fetched > queue.fetched then
  queue.fetched = robots_fetched
  local at = math.min(robots_fetched, now)
  if advance(at, 1) > now then
    at = math.max(at, queue.tail)
    queue.tail = advance(at, 1)
    slots[#slots + 1] = {go = at, slot_end = queue.tail, owner = ''}
    redis.call('ZADD', SLOTS, text(at), text(queue.tail) .. ':robots:')
  end
end

-- The documents that the pool has had today, a day of UTC, apart from those of the days beside it.
local day = math.floor(now / DAY)
local spent_field = 'spent' .. day % 2
local spent_day, spent = string.match(redis.call('HGET', QUEUE, spent_field) or '', '^(%d+) ([%d.]+)$')
local counts = ASK.budget > 0 or tonumber(spent_day) == day
spent = tonumber(spent_day) == day and duration(spent, 1e15) or 0
local used_up_until = 0
if ASK.budget > 0 and spent + ASK.cost > ASK.budget then used_up_until, decided = (day + 1) * DAY, 3 end

-- From here on as law.py, unless a process only tells what it knows of the queue: `max_wait` is negative then.
local caller, max_wait = ASK.caller, ASK.max_wait
local key = string.match(caller, '^[^/]*/') or ''
local interval = interval_at(now)
local reserved, go, slot_end, retry, back = false, now, 0, 0, now
local function trim(set, up_to)
  redis.call('ZREMRANGEBYSCORE', set, '-inf', text(up_to))
  redis.call('ZREMRANGEBYSCORE', set, text(now + MAX_AHEAD), '+inf')
end

-- The first instant from `start` on, or one soon after, where the turns of a set from `after` on leave a gap.
local function gap(set, start, apart, after)
  local function is_full(places)
    return redis.call('ZCOUNT', set, text(after), '(' .. text(start + places * apart)) >= places
  end
  local low, high = 0, 1
  while is_full(high) do low, high = high, 2 * high end
  while high - low > 1 do
    local middle = math.floor((low + high) / 2)
    if is_full(middle) then low = middle else high = middle end
  end
  return start + low * apart
end

if max_wait >= 0 then
  -- Who is active, this one included.
  local function active(set, member)
    trim(set, now)
    return redis.call('ZCARD', set) + (redis.call('ZSCORE', set, member) and 0 or 1)
  end
  local active_keys, active_callers = active(API_KEYS, key), active(CALLERS, caller)
  local spacing = interval * active_keys

  -- The caller's turns. The first that has come ends with this call, and the last one gets its number.
  for _, set in ipairs({TURNS, LINE}) do trim(set, now - TURN_GRACE - MISSED_SLOTS * spacing) end
  local own, due, due_at, last_at, latest = 0, nil, now + 1, nil, 0
  while own < MAX_OWN do
    local turn = tonumber(redis.call('ZSCORE', TURNS, caller .. ':' .. own) or nil)
    if not turn then break end
    if turn < due_at then due, due_at = own, turn end
    own, last_at, latest = own + 1, turn, math.max(latest, turn)
  end
  if due then
    own = own - 1
    for _, set in ipairs({TURNS, LINE}) do
      redis.call('ZADD', set, text(last_at), caller .. ':' .. due)
      redis.call('ZREM', set, caller .. ':' .. own)
    end
  end

  -- The horizon: no longer than the shortest max_wait of those that were refused recently.
  if queue.shortest_until <= now then queue.shortest = MAX_COST end
  local most = (active_keys > 1 or ASK.factor > 0 and queue.reports > 0) and AHEAD_SLOTS or FAR_SLOTS
  local horizon = math.min(math.max(AHEAD_FOR, math.min(most * interval, queue.shortest)), FAR_SLOTS * interval)
  local reach = math.min(max_wait, horizon)

  -- The first slot that fits. Those of a key are apart, so that the others find some between them when they ask.
  local function fit(at)
    go, slot_end = at, advance(at, ASK.cost)
    for _, slot in ipairs(slots) do
      if slot_end <= slot.go then break end
      if slot.slot_end > go then go, slot_end = slot.slot_end, advance(slot.slot_end, ASK.cost) end
    end
  end
  local last, held, next_held = nil, 0, nil
  for _, slot in ipairs(slots) do
    if active_keys > 1 and string.sub(slot.owner, 1, #key) == key then last = slot end
    if slot.go > now and slot.owner == caller then
      held, next_held = held + slot.slot_end - slot.go, next_held or slot.go
    end
  end
  local first = math.max(now, queue.hold, backoff.ends, used_up_until)
  fit(first)
  if last and go - now >= math.max(interval, CALL_TAKES) then
    fit(math.max(first, last.go + active_keys * (last.slot_end - last.go)))
  end
  local blocked = math.max(now, used_up_until, #slots >= MAX_SLOTS and slots[1].slot_end or 0)

  -- A caller holds its share of the horizon at most.
  local share = math.max(interval, math.floor(math.floor(horizon / active_keys) / active_callers))
  local may_go = next_held and held + slot_end - go > share and next_held or 0

  -- Before its turn, a caller gets a slot only if it is near or nobody is expected before it; late callers are not.
  local late = math.max(CALL_TAKES, math.floor(math.min(interval, reach) / 4))
  local function expected(at) return redis.call('ZCOUNT', LINE, '(' .. text(now - late), at) end
  local near = math.min(NEAR_SLOTS * interval, math.floor(reach / 2))
  local within = due and math.min(max_wait, FAR_SLOTS * interval) or reach
  local is_free = due or expected(text(go - near)) == 0
  if go - now <= within and blocked <= now and (go - now < near or may_go <= now and is_free) then
    reserved, back = true, slot_end
    queue.count, queue.tail, queue.pace = queue.count + 1, math.max(queue.tail, slot_end), interval_at(go)
    redis.call('ZADD', SLOTS, text(go), text(slot_end) .. ':' .. ASK.nonce .. ':' .. caller)
  else
    local opens = math.max(blocked, may_go, go - reach)
    local turn = opens
    -- Where no two slots are in reach and turns were missed, one more stands in for who may not come.
    local missed = expected('+inf') < redis.call('ZCARD', LINE)
    local is_next = expected(text(opens)) <= (missed and 1 or 0)
    local stands_in = reach < interval and missed and is_next and queue.stand_in < opens
    if stands_in then
      turn = opens + math.floor(reach * 3 / 4)
      queue.stand_in = turn
    elseif due then
      if not is_next then turn = gap(LINE, opens, interval, opens) end
    else
      -- Behind the others of its key, and the turns of the caller's other workers as far apart as its share.
      local start = gap(TURNS, opens, spacing, now - late + 1)
      if latest > 0 then start = math.max(start, latest + active_callers * spacing) end
      turn = gap(LINE, start, interval, start)
      -- The first turn of a key is put off for those of others by less than two rounds of the keys.
      local is_first = redis.call('ZCOUNT', TURNS, '(' .. text(now - late), '+inf') == 0
      if is_first and turn >= start + 2 * spacing then turn = start end
    end
    turn = math.max(turn, now + math.floor(math.min(interval, reach) / 4))
    retry = math.min(turn - now, LONGEST_RETRY)
    back, slot_end = now + retry, 0
    if own < MAX_OWN and not stands_in and redis.call('ZCARD', TURNS) < MAX_ACTIVE then
      for _, set in ipairs({TURNS, LINE}) do redis.call('ZADD', set, text(turn), caller .. ':' .. own) end
    end
    if max_wait <= queue.shortest then queue.shortest, queue.shortest_until = max_wait, back + TURN_GRACE end
  end
  for set, member in pairs({[API_KEYS] = key, [CALLERS] = caller}) do
    if redis.call('ZSCORE', set, member) or redis.call('ZCARD', set) < MAX_ACTIVE then
      redis.call('ZADD', set, 'GT', text(back + TURN_GRACE), member)
    end
  end
end
redis.call('ZADD', CALLERS, text(queue.steps), '')
if new_run then queue.run = math.max(now, queue.tail) + 1e6 end
write(QUEUE, queue)
if counts then
  redis.call('HSET', QUEUE, spent_field, string.format('%.0f %.6f', day, spent + (reserved and ASK.cost or 0)))
end
save_durable(KNOWN.queue, math.max(queue.tail, queue.hold))
local expiry = math.ceil((math.max(queue.tail, queue.hold, back, now) - now + LINGER) / 1000)
for i = 4, 9 do redis.call('PEXPIRE', KEYS[i], expiry) end
if counts then redis.call('PEXPIRE', QUEUE, math.max(expiry, math.ceil(((day + 2) * DAY - now) / 1000))) end
return {reserved and 1 or 0, now, go, slot_end, interval_at(go), queue.tail, queue.count, backoff.ends, clock_step,
  given_back and 1 or 0, math.floor(queue.latency), least, decided, retry}
