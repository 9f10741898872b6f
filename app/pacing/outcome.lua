-- Record the outcome of a slot: it was not used, or the pool asked the fleet to back off. ASK is `SlotOutcome` of
-- redis_pacer.py.
-- The step of a backoff doubles from one run of failures to the next. It starts again from the first if the pool was
-- quiet for as long as the last step took, or for RESET_AFTER if that is longer.
--
-- A run lasts for MAX_UNCONFIRMED at most unless two reporters agree that it is longer. So two ends are stored: the
-- latest that anyone reported (`claim`, by the reporter `by`), and the latest that another reporter did (`agreed`).
--
-- Returns {number, now}. The number is how long a backoff still takes; for the others, 1 if the slot was there, or if the
-- backoff was not known, else 0.
if ASK.what == 'released' then
  local queue, step = read(QUEUE, {tail = INSTANT, hold = INSTANT})
  -- After a step of the clock, the next reservation drops all slots of before.
  if step ~= 0 or redis.call('ZREM', SLOTS, ASK.slot) == 0 then return {0, now} end
  local last = redis.call('ZREVRANGE', SLOTS, 0, 0)[1]
  queue.tail = last and instant(string.match(last, '^%d+')) or 0
  redis.call('HSET', QUEUE, 'tail', text(queue.tail), 'seen', text(now))
  save_durable(KNOWN.queue, math.max(queue.tail, queue.hold))
  return {1, now}
end

local backoff, given_back = settle_backoff()
if ASK.what == 'known' then return {given_back and 1 or 0, now} end

local most = now + LONGEST_BACKOFF + MAX_CONFIRMED
for _, name in ipairs({'ends', 'claim', 'agreed'}) do backoff[name] = math.min(backoff[name], most) end

-- Requests sent together are refused together: they count as one failure, unless one brings a longer Retry-After.
local reported = now + ASK.retry_after
if now >= backoff.ends then
  local goes_on = backoff.step >= FIRST_BACKOFF and now - backoff.ends <= math.max(RESET_AFTER, backoff.step)
  backoff.step = goes_on and math.min(backoff.step * 2, LONGEST_BACKOFF) or FIRST_BACKOFF
  reported, backoff.began = now + math.max(backoff.step, ASK.retry_after), now
  refused(backoff, read(QUEUE, {pace = MAX_COST, page_at = INSTANT}))
end

local believed = reported
if ASK.reporter ~= '' then
  if ASK.reporter == redis.call('HGET', BACKOFF, 'by') then
    backoff.claim = math.max(backoff.claim, reported)
  elseif reported > backoff.claim then
    redis.call('HSET', BACKOFF, 'by', ASK.reporter)
    backoff.claim, backoff.agreed = reported, backoff.claim
  else
    backoff.agreed = math.max(backoff.agreed, reported)
  end
  believed = math.max(math.min(reported, backoff.began + MAX_UNCONFIRMED), backoff.agreed)
end

backoff.ends = math.max(backoff.ends, believed)
save_backoff(backoff)
return {math.max(0, backoff.ends - now), now}
