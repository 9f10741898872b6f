-- Record the outcome of a slot: it was not used, or the pool asked the fleet to back off.
--
-- ARGV  as `OutcomeArguments` of redis_pacer.py has them, which gives their numbers as ARG_...
--
-- The step of a backoff doubles from one run of failures to the next. It starts again from the first if the pool was
-- quiet for as long as the last step took, or for `reset_after` if that is longer.
--
-- A run lasts for `max_unconfirmed` at most unless two reporters agree that it is longer. So two ends are stored: the
-- latest that anyone reported (`claim`, by the reporter `by`), and the latest that another reporter did (`agreed`).
--
-- Returns {number, now}. The number is how long a backoff still takes; for the others, 1 if the slot was there, or if the
-- backoff was not known, else 0.
if ARGV[ARG_WHAT] == 'released' then
  local slot = ARGV[ARG_SLOT]
  local go = tonumber(redis.call('ZSCORE', SLOTS, slot))
  local stored = redis.call('HMGET', QUEUE, 'hold', 'count', 'seen')
  -- After a step of the clock, the next reservation drops all slots of before.
  if not go or step_since(stored[3]) ~= 0 then return {0, now} end
  redis.call('ZREM', SLOTS, slot)
  local last = redis.call('ZREVRANGE', SLOTS, 0, 0)[1]
  local tail = last and instant(string.match(last, '^%d+')) or 0
  redis.call('HSET', QUEUE, 'tail', text(tail))
  save_durable_queue(tail, instant(stored[1]), instant(stored[2]))
  return {1, now}
end

local ends, given_back, bad, bad_at = settle_backoff()
if ARGV[ARG_WHAT] == 'known' then return {given_back and 1 or 0, now} end

local retry_after, max_retry_after = tonumber(ARGV[ARG_RETRY_AFTER]), tonumber(ARGV[ARG_MAX_RETRY_AFTER])
local first_step, longest_step = tonumber(ARGV[ARG_FIRST_STEP]), tonumber(ARGV[ARG_LONGEST_STEP])
local reset_after = tonumber(ARGV[ARG_RESET_AFTER])
retry_after = math.min(retry_after, max_retry_after)
local max_unconfirmed, reporter = tonumber(ARGV[ARG_MAX_UNCONFIRMED]), ARGV[ARG_REPORTER]
local max_ahead = longest_step + max_retry_after
local stored = redis.call('HMGET', BACKOFF, 'step', 'began', 'by', 'claim', 'agreed')
local step, began = tonumber(stored[1]) or 0, instant(stored[2])
ends = math.min(ends, now + max_ahead)
if not (step >= first_step and step <= longest_step) then step = 0 end

-- Requests sent together are refused together: they count as one failure, unless one brings a longer Retry-After.
local reported = now + retry_after
if now >= ends then
  local quiet = math.max(reset_after, step)
  if ends == 0 or step == 0 or now - ends > quiet then
    step = first_step
  else
    step = math.min(step * 2, longest_step)
  end
  reported, began = now + math.max(step, retry_after), now
  local queue = redis.call('HMGET', QUEUE, 'pace', 'page_at', 'seen')
  local page_at = shifted(queue[2], step_since(queue[3]))
  bad, bad_at = refused(duration(queue[1], MAX_COST), page_at, bad, bad_at)
end

local by = stored[3] or ''
local claim, agreed = instant(stored[4], max_ahead), instant(stored[5], max_ahead)
local believed = reported
if reporter ~= '' then
  if reporter == by then
    claim = math.max(claim, reported)
  elseif reported > claim then
    by, claim, agreed = reporter, reported, claim
  else
    agreed = math.max(agreed, reported)
  end
  believed = math.max(math.min(reported, began + max_unconfirmed), agreed)
end

ends = math.max(ends, believed)
redis.call('HSET', BACKOFF, 'until', text(ends), 'step', text(step), 'began', text(began),
  'by', by, 'claim', text(claim), 'agreed', text(agreed), 'seen', text(now), 'bad', text(bad), 'bad_at', text(bad_at))
save_durable(POOL_FIELD, text(ends) .. ' ' .. text(now), ends)
local kept = math.max(ends - now + math.max(reset_after, step) + LINGER, MEMORY)
redis.call('PEXPIRE', BACKOFF, math.ceil(kept / 1000))
return {math.max(0, ends - now), now}
