-- Writes origins into a list: ARGV[1] has a line for each, the score and the name, or "-" and the name to remove it. A
-- value of another type is replaced. ARGV[2]: "sum" to add the scores to those there are. ARGV[3]: seconds. ARGV[4]:
-- lower scores are removed; or "".
-- origin_lists.py gives LISTED.
local kind = redis.call('type', KEYS[1]).ok
if kind ~= 'zset' and kind ~= 'none' then redis.call('del', KEYS[1]) end
local leaving = {}
for score, name in string.gmatch(ARGV[1], '(%S+) (%S+)') do
  if score == '-' then
    leaving[#leaving + 1] = name
  elseif ARGV[2] == 'sum' then
    redis.call('zincrby', KEYS[1], score, name)
  else
    redis.call('zadd', KEYS[1], score, name)
  end
end
if kind == 'zset' and #leaving > 0 then redis.call('zrem', KEYS[1], unpack(leaving)) end
redis.call('zremrangebyrank', KEYS[1], 0, -LISTED - 1)
if ARGV[4] ~= '' then redis.call('zremrangebyscore', KEYS[1], '-inf', '(' .. ARGV[4]) end
redis.call('expire', KEYS[1], ARGV[3])
