-- Record the outcome of a slot: it was not used, or the origin asked the fleet to back off.
--
-- ARGV  3 "released", with 4 the slot as it is in the set
--       3 "backoff", with 4 Retry-After or 0   5 first step   6 longest step   7 longest Retry-After   8 reset after
--         9 longest on the word of one reporter   10 the reporter, empty for an operator
--
-- The step of a backoff doubles from one run of failures to the next. It starts again from the first if the origin was
-- quiet for as long as the last step took, or for ARGV[8] if that is longer.
--
-- A run lasts for ARGV[9] at most unless two reporters agree that it is longer. So two ends are stored: the latest
-- that anyone reported (`claim`, by the reporter `by`), and the latest that another reporter did (`agreed`).
--
-- Returns {1 if anything changed, now, until}.
if ARGV[3] == 'released' then
  local slot = ARGV[4]
  local go = tonumber(redis.call('ZSCORE', SLOTS, slot))
  local stored = redis.call('HMGET', QUEUE, 'hint', 'counted', 'hold', 'count', 'seen')
  -- After a step of the clock, the next reservation drops all slots of before.
  if not go or step_since(stored[5]) > 0 then return {0, now, 0} end
  redis.call('ZREM', SLOTS, slot)
  local caller = string.match(slot, '^%d+:%w+:(.+)$')
  if caller and go > instant(stored[2], MAX_AHEAD) then
    local ahead = (tonumber(redis.call('HGET', AHEAD, caller)) or 0) - 1
    if ahead >= 1 then redis.call('HSET', AHEAD, caller, text(ahead)) else redis.call('HDEL', AHEAD, caller) end
  end
  local last = redis.call('ZREVRANGE', SLOTS, 0, 0)[1]
  local tail = last and instant(string.match(last, '^%d+')) or 0
  redis.call('HSET', QUEUE, 'tail', text(tail))
  save_durable_queue(tail, instant(stored[3]), instant(stored[4]))
  if go < instant(stored[1], MAX_AHEAD) then redis.call('HSET', QUEUE, 'hint', text(go)) end
  return {1, now, 0}
end

local retry_after, first_step, longest_step = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local max_retry_after, reset_after = tonumber(ARGV[7]), tonumber(ARGV[8])
retry_after = math.min(retry_after, max_retry_after)
local max_unconfirmed, reporter = tonumber(ARGV[9]), ARGV[10]
local max_ahead = longest_step + max_retry_after
local stored = redis.call('HMGET', BACKOFF, 'until', 'step', 'began', 'by', 'claim', 'agreed', 'seen')
local clock_step = step_since(stored[7])
local ends, step = math.min(backoff_end(), now + max_ahead), tonumber(stored[2]) or 0
local began = shifted(stored[3], clock_step)
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
end

local by = stored[4] or ''
local claim = instant(shifted(stored[5], clock_step), max_ahead)
local agreed = instant(shifted(stored[6], clock_step), max_ahead)
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

local changed = believed > ends
ends = math.max(ends, believed)
redis.call('HSET', BACKOFF, 'until', text(ends), 'step', text(step), 'began', text(began),
  'by', by, 'claim', text(claim), 'agreed', text(agreed), 'seen', text(now))
save_durable(SITE_FIELD, text(ends) .. ' ' .. text(now), ends)
redis.call('PEXPIRE', BACKOFF, math.ceil((ends - now + math.max(reset_after, step) + LINGER) / 1000))
return {changed and 1 or 0, now, ends}
