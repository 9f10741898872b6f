-- Record the status that a page answered to an agent: a refusal begins or continues a fact, a success ends it.
--
-- KEYS  1 hash: by origin, the facts of its agents as JSON {agent: [status, since, reported_at, count, slots,
--         price, priced at, page]}; the last three if a 402 named a price
--       2 sorted set: origins by the version of their last change (milliseconds, never repeated)
-- ARGV  1 origin   2 agent   3 status, 0 for a success   4 slot, "" for none   5 now in ms, "" for the server's clock
--       6 seconds that a fact is kept   7 agents of an origin   8 origins   9 bytes of the longest value
--       10 price, "" for none   11 its page, "" if unknown
--
-- Returns {version, facts}, or nothing if the report changes nothing. An origin whose facts have ended stays in the
-- sorted set, so that other processes learn of it.
local facts, changes = KEYS[1], KEYS[2]
local origin, agent, status, slot = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local kept, max_agents, max_origins = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local SLOTS, SLOT_CHARS, HOUR, AT_ONCE = 16, 16, 3600000, 100

local time = redis.call('TIME')
local clock = tonumber(ARGV[5]) or tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local now = math.floor(clock / 1000)

local function replace_foreign(key, expected)
  local kind = redis.call('TYPE', key).ok
  if kind ~= expected and kind ~= 'none' then redis.call('DEL', key) end
end
replace_foreign(facts, 'hash')
replace_foreign(changes, 'zset')

local newest = tonumber(redis.call('ZREVRANGE', changes, 0, 0, 'WITHSCORES')[2]) or 0
if newest > clock + HOUR then -- the clock was set back, or the value is not ours
  redis.call('DEL', facts, changes)
  newest = 0
end
local version = math.max(clock, newest + 1)

local agents = {}
if redis.call('HSTRLEN', facts, origin) <= tonumber(ARGV[9]) then
  local ok, stored = pcall(cjson.decode, redis.call('HGET', facts, origin) or '{}')
  for name, it in pairs(ok and type(stored) == 'table' and stored or {}) do
    local valid = type(name) == 'string' and type(it) == 'table' and type(it[5]) == 'string'
    for i = 1, 4 do valid = valid and type(it[i]) == 'number' end
    if valid and it[3] + kept > now then agents[name] = it end
  end
end

local fact = agents[agent]
if status == 0 then
  if not fact then return nil end
  agents[agent] = nil
else
  fact = fact or {status, now, now, 0, ''}
  -- One permit counts once.
  if slot ~= '' and string.find(fact[5], slot, 1, true) then return nil end
  slot = #slot == SLOT_CHARS and slot or ''
  local it = {status, fact[2], now, math.min(fact[4] + 1, 1e9), string.sub(slot .. fact[5], 1, SLOTS * SLOT_CHARS)}
  if ARGV[10] ~= '' then
    it[6], it[7], it[8] = ARGV[10], now, ARGV[11]
  elseif type(fact[6]) == 'string' and type(fact[7]) == 'number' and type(fact[8]) == 'string' then
    it[6], it[7], it[8] = fact[6], fact[7], fact[8]
  end
  agents[agent] = it
end

local names = {}
for name in pairs(agents) do names[#names + 1] = name end
table.sort(names, function(a, b)
  if (a == agent) ~= (b == agent) then return a == agent end
  return agents[a][3] > agents[b][3]
end)
for i = max_agents + 1, #names do agents[names[i]] = nil end

local text = ''
if #names == 0 then
  redis.call('HDEL', facts, origin)
else
  text = cjson.encode(agents)
  redis.call('HSET', facts, origin, text)
end
redis.call('ZADD', changes, string.format('%.0f', version), origin)

local function drop(origins)
  for _, name in ipairs(origins) do
    redis.call('ZREM', changes, name)
    redis.call('HDEL', facts, name)
  end
end
drop(redis.call('ZRANGEBYSCORE', changes, '-inf', string.format('%.0f', clock - kept * 1000), 'LIMIT', 0, AT_ONCE))
local over = math.min(redis.call('ZCARD', changes) - max_origins, AT_ONCE)
if over > 0 then drop(redis.call('ZRANGE', changes, 0, over - 1)) end
redis.call('EXPIRE', facts, kept + 86400)
redis.call('EXPIRE', changes, kept + 86400)
return {string.format('%.0f', version), text}
