-- What came of a slot: it was not used, or the origin asked the fleet to hold back.
--
-- ARGV  3 "released", with 4 the slot as it stands in the set
--       3 "backoff", with 4 Retry-After or 0   5 first   6 longest step   7 longest Retry-After   8 quiet
--         9 longest on the word of one reporter   10 the reporter, empty for an operator
--
-- A back-off doubles from one run of trouble to the next, and is forgotten when none came for as long as it last took,
-- or for the quiet time.
--
-- A run of trouble lasts for ARGV[9] at most, unless two reporters agree that it is longer: the later end that anyone
-- reported (`claim`, by the reporter `by`), and the latest that somebody else did (`agreed`), are kept.
--
-- Returns {1 if anything changed, now, until}.
if ARGV[3] == 'released' then
  local slot = ARGV[4]
  local go = tonumber(redis.call('ZSCORE', SLOTS, slot))
  local held = redis.call('HMGET', LANE, 'hint', 'counted', 'hold', 'count', 'seen')
  -- After a step of the clock, the slots of before are dropped by whoever reserves next.
  if not go or step_since(held[5]) > 0 then return {0, now, 0} end
  redis.call('ZREM', SLOTS, slot)
  local caller = string.match(slot, '^%d+:%w+:(.+)$')
  if caller and go > instant(held[2], FARTHEST) then
    local left = (tonumber(redis.call('HGET', AHEAD, caller)) or 0) - 1
    if left >= 1 then redis.call('HSET', AHEAD, caller, text(left)) else redis.call('HDEL', AHEAD, caller) end
  end
  local last = redis.call('ZREVRANGE', SLOTS, 0, 0)[1]
  local tail = last and instant(string.match(last, '^%d+')) or 0
  redis.call('HSET', LANE, 'tail', text(tail))
  keep_lane(tail, instant(held[3]), instant(held[4]))
  if go < instant(held[1], FARTHEST) then redis.call('HSET', LANE, 'hint', text(go)) end
  return {1, now, 0}
end

local asked, first, last = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
asked = math.min(asked, tonumber(ARGV[7]))
local unconfirmed, reporter = tonumber(ARGV[9]), ARGV[10]
local longest = last + tonumber(ARGV[7])
local held = redis.call('HMGET', BACKOFF, 'until', 'step', 'began', 'by', 'claim', 'agreed', 'seen')
local back = step_since(held[7])
local ends, step, began = math.min(back_off_ends(), now + longest), tonumber(held[2]) or 0, moved(held[3], back)
if not (step >= first and step <= last) then step = 0 end

-- One burst of requests meets one burst of refusals: they count once, but for a longer Retry-After.
local wanted = now + asked
if now >= ends then
  local quiet = math.max(tonumber(ARGV[8]), step)
  if ends == 0 or step == 0 or now - ends > quiet then step = first else step = math.min(step * 2, last) end
  wanted, began = now + math.max(step, asked), now
end

local by, claim, agreed = held[4] or '', instant(moved(held[5], back), longest), instant(moved(held[6], back), longest)
local believed = wanted
if reporter ~= '' then
  if reporter == by then
    claim = math.max(claim, wanted)
  elseif wanted > claim then
    by, claim, agreed = reporter, wanted, claim
  else
    agreed = math.max(agreed, wanted)
  end
  believed = math.max(math.min(wanted, began + unconfirmed), agreed)
end

local changed = believed > ends
ends = math.max(ends, believed)
redis.call('HSET', BACKOFF, 'until', text(ends), 'step', text(step), 'began', text(began),
  'by', by, 'claim', text(claim), 'agreed', text(agreed), 'seen', text(now))
keep(PLACE_FIELD, text(ends) .. ' ' .. text(now), ends)
redis.call('PEXPIRE', BACKOFF, math.ceil((ends - now + math.max(tonumber(ARGV[8]), step) + LINGER) / 1000))
return {changed and 1 or 0, now, ends}
