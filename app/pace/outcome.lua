-- What came of a slot: it was not used, or the origin asked the fleet to hold back.
--
-- KEYS  as in reserve.lua
-- ARGV  1 "released", with 2 the slot as it stands in the set
--       1 "backoff", with 2 Retry-After or 0   3 first   4 longest step   5 longest Retry-After   6 quiet
--         7 longest on the word of one reporter   8 the reporter, empty for an operator
--
-- Instants and lengths of time as in reserve.lua. A back-off doubles from one run of trouble to the next, and is
-- forgotten when none came for as long as it last took, or for the quiet time.
--
-- A run of trouble lasts for ARGV[7] at most, unless two reporters agree that it is longer: the later end that anyone
-- reported (`claim`, by the reporter `by`), and the latest that somebody else did (`agreed`), are kept.
--
-- Returns {1 if anything changed, now, until}.
local BACKOFF, LANE, SLOTS, AHEAD = KEYS[1], KEYS[2], KEYS[3], KEYS[5]
local FARTHEST = 5184000e6
local KEPT = 3600e6

for place, kind in ipairs({'hash', 'hash', 'zset', 'zset', 'hash'}) do
  local held = redis.call('TYPE', KEYS[place]).ok
  if held ~= 'none' and held ~= kind then redis.call('UNLINK', KEYS[place]) end
end

local clock = redis.call('TIME')
local now = clock[1] * 1e6 + clock[2]

local function instant(value, farthest)
  local at = tonumber(value) or 0
  if at ~= at or at < 0 or at > now + farthest then return 0 end
  return math.floor(at)
end

local function text(number) return string.format('%.0f', number) end

if ARGV[1] == 'released' then
  local slot = ARGV[2]
  local go = tonumber(redis.call('ZSCORE', SLOTS, slot))
  if not go then return {0, now, 0} end
  redis.call('ZREM', SLOTS, slot)
  local held = redis.call('HMGET', LANE, 'hint', 'counted')
  local caller = string.match(slot, '^%d+:%w+:(.+)$')
  if caller and go > instant(held[2], FARTHEST) then
    local left = (tonumber(redis.call('HGET', AHEAD, caller)) or 0) - 1
    if left >= 1 then redis.call('HSET', AHEAD, caller, text(left)) else redis.call('HDEL', AHEAD, caller) end
  end
  local last = redis.call('ZREVRANGE', SLOTS, 0, 0)[1]
  redis.call('HSET', LANE, 'tail', last and string.match(last, '^%d+') or '0')
  if go < instant(held[1], FARTHEST) then redis.call('HSET', LANE, 'hint', text(go)) end
  return {1, now, 0}
end

local asked, first, last = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
asked = math.min(asked, tonumber(ARGV[5]))
local unconfirmed, reporter = tonumber(ARGV[7]), ARGV[8]
local longest = last + tonumber(ARGV[5])
local held = redis.call('HMGET', BACKOFF, 'until', 'step', 'began', 'by', 'claim', 'agreed')
local ends, step, began = instant(held[1], longest), tonumber(held[2]) or 0, instant(held[3], 0)
if not (step >= first and step <= last) then step = 0 end

-- One burst of requests meets one burst of refusals: they count once, but for a longer Retry-After.
local wanted = now + asked
if now >= ends then
  local quiet = math.max(tonumber(ARGV[6]), step)
  if ends == 0 or step == 0 or now - ends > quiet then step = first else step = math.min(step * 2, last) end
  wanted, began = now + math.max(step, asked), now
end

local by, claim, agreed = held[4] or '', instant(held[5], longest), instant(held[6], longest)
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
  'by', by, 'claim', text(claim), 'agreed', text(agreed))
redis.call('PEXPIRE', BACKOFF, math.ceil((ends - now + math.max(tonumber(ARGV[6]), step) + KEPT) / 1000))
return {changed and 1 or 0, now, ends}
