-- By the store's clock, so that the clocks of the processes need not agree. The stored value may be anything.
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000
local max_debt = tonumber(ARGV[#ARGV])
local debts = {}
for i, key in ipairs(KEYS) do
  local debt = 0
  local stored = redis.pcall('GET', key)
  if type(stored) == 'string' and #stored <= 32 and string.match(stored, '^%d+%.%d+$') then
    local left = tonumber(stored) - now
    if left > 0 and left <= max_debt + 1 then debt = left end
  end
  debt = math.min(debt + tonumber(ARGV[i]), max_debt)
  if debt > 0 then
    redis.call('SET', key, string.format('%.6f', now + debt), 'PX', math.ceil(debt * 1000) + 1000)
  end
  debts[i] = string.format('%.6f', debt)
end
return debts
